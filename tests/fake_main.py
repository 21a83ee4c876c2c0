"""The whole command line on the fake counter, for tests that need a process of its own: python -m tests.fake_main stat …"""

from __future__ import annotations

from flopwatch import counters
from flopwatch.cli import main
from tests.fakes import FakeCounter

if __name__ == "__main__":
    counters.find = lambda name="auto", needs=None: FakeCounter()
    main()
