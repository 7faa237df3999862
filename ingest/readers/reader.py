"""What every reader promises: a foreign file becomes our words, in a stream, and nothing is silently dropped."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol

from crosswind.data.job import Job
from crosswind.data.run import Run

QUOTED = 20  # skipped lines that a report quotes; the rest are counted


@dataclass(frozen=True)
class Skipped:
    """One line that was not understood, and why."""

    line: int
    text: str
    reason: str


@dataclass
class Report:
    """What became of a file: rows read, rows skipped, and the first skipped ones in full."""

    path: str
    format: str
    read: int = 0
    skipped: int = 0
    quoted: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def skip(self, line: int, text: str, reason: str) -> None:
        """Counts a line that was not understood."""
        self.skipped += 1
        if len(self.quoted) < QUOTED:
            self.quoted.append(Skipped(line, text[:200], reason))


class Reader(Protocol):
    """One format of somebody else's files."""

    name: ClassVar[str]
    description: ClassVar[str]

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether a file that begins with `head` (at most 64 KiB) is of this format; never raises."""
        ...

    def read(self, path: Path, report: Report, *, system: str) -> Iterator[Job | Run]:
        """The file's jobs and runs; lines not understood go to the report. Raises: MalformedError, UnavailableError."""
        ...
