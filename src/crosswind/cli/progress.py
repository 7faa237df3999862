"""A progress bar on a terminal, plain lines elsewhere."""

import sys
import time
from typing import Self, TextIO

WIDTH = 24
CLEAR = "\r\x1b[K"


class Progress:
    """Shows on standard error how many of `total` parts of the work are done."""

    def __init__(self, total: int, *, stream: TextIO = sys.stderr) -> None:
        self._total = total
        self._done = 0
        self._stream = stream
        self._live = stream.isatty()
        self._begin = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._stream.write(CLEAR)
            self._stream.flush()

    def start(self, what: str) -> None:
        """Show the part in progress."""
        filled = WIDTH * self._done // self._total
        bar = "█" * filled + "░" * (WIDTH - filled)
        elapsed = f"{time.monotonic() - self._begin:3.0f} s"
        if self._live:
            self._stream.write(f"{CLEAR}{bar} {self._done}/{self._total} {elapsed}  {what[:60]}")
        else:
            self._stream.write(f"[{self._done + 1}/{self._total} {elapsed}] {what}\n")
        self._stream.flush()

    def done(self, outcome: str = "") -> None:
        """Count one part as done, and leave its outcome on the screen."""
        self._done += 1
        if outcome:
            self._stream.write(f"{CLEAR if self._live else ''}  {outcome}\n")
            self._stream.flush()
