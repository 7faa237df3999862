"""Common parts of schedulers' accounts of jobs: times, exit status, and remarks on oddities."""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.job import Job
from crosswind.ingest.reader.lines import numbered_lines
from crosswind.ingest.reader.reader import Report, Value, converted
from crosswind.ingest.readers.clock import EARLIEST_SECONDS, LATEST_SECONDS, Clock

REMEMBERED = 100_000  # job ids, to notice duplicates; some 20 MB
DAY_NS = 86_400_000_000_000  # clocks and time zones may differ by that; a later end is impossible
LAST_SIGNAL = 64


def epoch_nanoseconds(name: str, text: str) -> int | None:
    """Return ns of a time in seconds since 1970; None for an empty text or 0. Raises: MalformedError."""
    if text in ("", "0"):
        return None
    seconds = int(text) if text.isascii() and text.isdigit() and len(text) < 13 else 0
    if not EARLIEST_SECONDS <= seconds <= LATEST_SECONDS:
        raise MalformedError(f"{name} {text[:40]!r}; expected seconds since 1970, between 2001 and 2262")
    return seconds * 1_000_000_000


def shell_signal(code: int | None) -> int | None:
    """Return the signal in a shell's exit code: 9 of 137, which is 128 + 9."""
    return code - 128 if code is not None and 128 < code <= 128 + LAST_SIGNAL else None


def wait_status(status: int) -> tuple[int | None, int | None]:
    """Return exit code and signal of a status of waitpid(2); a process ended by a signal has no exit code.

    Source: wait(2), WIFEXITED and WIFSIGNALED.
    """
    signal = status & 0x7F
    code = None if signal else status >> 8 & 0xFF
    return code, signal or shell_signal(code)


def line_records(path: Path, report: Report) -> Iterator[tuple[int, str, str]]:
    """Yield lines as records, each being its own text. Raises: as `numbered_lines`."""
    return ((number, text, text) for number, text in numbered_lines(path, report))


@dataclass
class Accounts:
    """Counts the jobs handed out, and their oddities, for the report."""

    report: Report
    remarks: Counter[str] = field(default_factory=Counter)
    seen: OrderedDict[str, None] = field(default_factory=OrderedDict)
    now_ns: int = field(default_factory=time.time_ns)

    def jobs(self, records: Iterable[tuple[int, str, Value]], job_of: Callable[[Value], Job | None]) -> Iterator[Job]:
        """Return the jobs of records, each with line number and text; bad ones go to the report, and None is no job."""
        return (self.counted(job) for job in converted(records, job_of, self.report) if job)

    def counted(self, job: Job) -> Job:
        """Count the job, and return it."""
        self.report.read += 1
        self.remarks["jobs are repeated: the later account counts"] += job.job_id in self.seen
        self.seen[job.job_id] = None
        if len(self.seen) > REMEMBERED:
            self.seen.popitem(last=False)
        ended, started = job.ended_ns or 0, job.started_ns or 0
        self.remarks["jobs end before they start"] += 0 < ended < started
        self.remarks["jobs have times in the future"] += max(ended, started) > self.now_ns + DAY_NS
        return job

    def note(self, clock: Clock | None = None) -> None:
        """Write the remarks into the report."""
        self.report.remark(self.remarks)
        self.report.notes += clock.notes() if clock else []
        if not self.report.read:
            self.report.notes.append("no jobs")
