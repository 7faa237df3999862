"""Progress of long work: a line on a terminal that is drawn anew, with the time left."""

import shutil
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Self, TextIO

from crosswind.dashboards.wording import MINUTE, quantity, seconds

WIDTH = 24
CLEAR = "\r\x1b[K"
PATIENCE_SECONDS = 2.0  # shorter work shows nothing
EVERY_SECONDS = 0.2
SURE_SECONDS = 1.0  # of work, from which on the time left is worth saying
BYTES = "bytes"


class Progress:
    """Shows, while work takes longer than 2 s, a line on standard error if that is a terminal, and else nothing.

        with Progress("sacct.txt", size, unit=BYTES) as progress:
            progress.advance(len(block))

    Work sets `what`, `done` (of `total`, if that is known, in `unit`) and `note` at any time; lines
    are drawn by themselves. `look` is for work that does not report: it is called before each drawing, and returns
    `done` and `note`.
    """

    def __init__(
        self,
        what: str,
        total: float | None = None,
        *,
        unit: str = "",
        look: Callable[[], tuple[float, str]] | None = None,
        stream: TextIO | None = None,
    ) -> None:
        self.what = what
        self.total = total
        self.done = 0.0
        self.note = ""
        self._unit = unit
        self._look = look
        self._stream = stream or sys.stderr
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._begin = time.monotonic()

    def __enter__(self) -> Self:
        if self._stream.isatty():
            self._thread = threading.Thread(target=self._draw_until_over, name="progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread:
            self._thread.join()

    def advance(self, amount: float = 1) -> None:
        """Count so much more as done."""
        self.done += amount

    def _draw_until_over(self) -> None:
        if self._over.wait(PATIENCE_SECONDS):
            return
        with suppress(OSError, ValueError):  # the terminal is gone, the stream closed: the work goes on
            while not self._over.wait(EVERY_SECONDS):
                self._write(CLEAR + self._line()[: shutil.get_terminal_size().columns - 1])
            self._write(CLEAR)

    def _line(self) -> str:
        if self._look:
            self.done, self.note = self._look()
        return progress_line(
            self.what, (self.done, self.total, self._unit), time.monotonic() - self._begin, note=self.note
        )

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def stopwatch() -> Callable[[], tuple[float, str]]:
    """Return the `look` of work that does not report, but whose usual time is known: the seconds from now on."""
    begin = time.monotonic()
    return lambda: (time.monotonic() - begin, "")


def progress_line(what: str, amounts: tuple[float, float | None, str], elapsed_seconds: float, *, note: str) -> str:
    """Return the line of work of which `amounts` (done, total or None, unit) are known."""
    done, total, unit = amounts
    parts = [what]
    if total and done:
        parts = [bar(done / total), *parts, f"{_amount(min(done, total), unit)} of {_amount(total, unit)}"]
    elif done:
        parts.append(_amount(done, unit))
    parts += [note] if note else []
    left = _left(done, total, elapsed_seconds)
    return "  ".join([*parts, _time(elapsed_seconds) + (f", {left} left" if left else "")])


class Parts:
    """Shows how many of `total` parts of the work are done: a bar on a terminal, and elsewhere a line for each part."""

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
        elapsed = time.monotonic() - self._begin
        if self._live:
            left = _left(self._done, self._total, elapsed)
            times = f"{elapsed:3.0f} s" + (f", about {left} left" if left else "")
            self._stream.write(
                f"{CLEAR}{bar(self._done / self._total)} {self._done}/{self._total} {times}  {what[:60]}"
            )
        else:
            self._stream.write(f"[{self._done + 1}/{self._total} {elapsed:3.0f} s] {what}\n")
        self._stream.flush()

    def done(self, outcome: str = "") -> None:
        """Count one part as done, and leave its outcome on the screen."""
        self._done += 1
        if outcome:
            self._stream.write(f"{CLEAR if self._live else ''}  {outcome}\n")
            self._stream.flush()


def bar(share: float) -> str:
    """Return a bar of which a share is filled."""
    filled = int(WIDTH * min(1.0, share))
    return "█" * filled + "░" * (WIDTH - filled)


def _left(done: float, total: float | None, elapsed_seconds: float) -> str:
    """Return the time left at the pace so far; empty where it is not known."""
    if not total or not 0 < done < total or elapsed_seconds < SURE_SECONDS:
        return ""
    return _time(elapsed_seconds * (total - done) / done)


def _amount(value: float, unit: str) -> str:
    if unit == "s":
        return _time(value)
    return quantity(value, unit) if unit == BYTES else f"{value:,.0f} {unit}".replace(",", "\u202f").strip()


def _time(value: float) -> str:
    return seconds(value) if value >= 2 * MINUTE else f"{value:.0f} s"
