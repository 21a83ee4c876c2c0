"""`python -m flopwatch`."""

from __future__ import annotations

from flopwatch.cli import main

if __name__ == "__main__":
    main()
