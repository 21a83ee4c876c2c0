"""A command at a terminal of its own, as a person would run it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import termios
import time
from collections.abc import Callable, Sequence

LIMIT_SECONDS = 60


class Terminal:
    """A command that runs at a new terminal of 80 columns; `finish` returns all that was shown."""

    COLUMNS = 80

    def __init__(self, command: Sequence[str]) -> None:
        self._pid, self._end = pty.fork()
        if self._pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, self.COLUMNS, 0, 0))
            os.environ["TERM"] = "xterm"
            os.execvp(command[0], command)
        self._before = termios.tcgetattr(self._end)
        self._shown = b""
        self._state: int | None = None

    def wait_for(self, text: str) -> None:
        """Wait until the command has shown `text`."""
        self._read(lambda: text.encode() in self._shown)
        assert text.encode() in self._shown, self._shown

    def press_ctrl_c(self) -> None:
        os.write(self._end, b"\x03")

    def finish(self) -> str:
        """Wait for the command's end."""
        self._read(lambda: False)
        _, self._state = os.waitpid(self._pid, 0)
        return self._shown.decode().replace("\r\n", "\n")

    @property
    def code(self) -> int:
        """The exit code; minus the signal that ended the command itself."""
        assert self._state is not None
        return os.waitstatus_to_exitcode(self._state)

    def is_as_before(self) -> bool:
        """Whether the terminal's settings are what they were, so that a shell can go on with it."""
        return termios.tcgetattr(self._end) == self._before

    def _read(self, enough: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LIMIT_SECONDS
        while not enough() and time.monotonic() < deadline:
            if select.select([self._end], [], [], 0.1)[0]:
                try:
                    piece = os.read(self._end, 65536)
                except OSError:
                    return
                if not piece:
                    return
                self._shown += piece
