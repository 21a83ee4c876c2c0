"""Other counters beside flopwatch, on the same cases, each in an environment of its own; `../peers.py` is the command."""
