"""Jobs in the Standard Workload Format of the Parallel Workloads Archive."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.job import Job
from crosswind.ingest.reader.lines import plain_head
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.clock import LATEST_SECONDS
from crosswind.ingest.readers.schedulers.accounts import Accounts, line_records

FIELDS = (
    *("job", "submit_seconds", "wait_seconds", "run_seconds", "processors", "cpu_seconds_per_processor"),
    *("memory_kilobytes_per_processor", "requested_processors", "requested_seconds"),
    *("requested_memory_kilobytes_per_processor", "status", "user", "group", "executable", "queue", "partition"),
    *("preceding_job", "think_seconds"),
)
KEPT = tuple((place, FIELDS[place]) for place in (5, 6, 7, 8, 9, 10, 12, 13, 15, 16, 17))
SINCE_START = ((1, FIELDS[1]), (2, FIELDS[2]))  # kept if they do not become times
NUMBERS = re.compile(r"[ \t]*(?:-?[0-9]{1,15}(?:\.[0-9]{1,15})?[ \t]+){17}-?[0-9]{1,15}(?:\.[0-9]{1,15})?[ \t]*")
WHOLE = re.compile(r"\.0+(?!\S)")  # simulators write 8.0, -1.0 and -0.0
INTEGER = re.compile("-1|[0-9]{1,15}")
UNKNOWN = "-1"
STATES = {"1": "COMPLETED", "0": "FAILED", "5": "CANCELLED", UNKNOWN: ""}
PARTS = ("2", "3", "4")  # parts of a job that was swapped out; a line of 0 or 1 is the whole
START = re.compile(r";\s*UnixStartTime:\s*([0-9]{1,12})\s*")
SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class SwfReader:
    """One job for each line.

    Source: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html (version 2.2)
    """

    name: ClassVar[str] = "swf"
    description: ClassVar[str] = "Standard Workload Format of the Parallel Workloads Archive (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether a line of 18 numbers comes first, or after comments; without comments the name decides."""
        lines = [line.rstrip("\r") for line in plain_head(head).split("\n") if line.strip()]
        first = next((line for line in lines if not line.startswith(";")), "")
        is_named = ".swf" in path.suffixes or first not in lines[:1]
        return is_named and NUMBERS.fullmatch(first) is not None

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Job]:
        """Yield the jobs in the file's order. Raises: UnavailableError, MalformedError."""
        reading = Reading(context.system, Accounts(report))
        yield from reading.accounts.jobs(line_records(path, report), reading.take)
        reading.note()


@dataclass
class Reading:
    """One pass over the lines of a log."""

    system: str
    accounts: Accounts
    start_seconds: int = 0  # of the log, since 1970; 0 is unknown

    def take(self, text: str) -> Job | None:
        """Return the job of a line; None for comments and for parts of a job. Raises: MalformedError."""
        if text.startswith(";"):
            self.heed(text)
            return None
        values = (WHOLE.sub("", text) if ".0" in text else text).split()
        if len(values) != len(FIELDS) or not NUMBERS.fullmatch(text):
            raise MalformedError(_fault(values))
        if values[10] in PARTS:
            self.accounts.remarks["lines of parts of jobs: another line has the whole"] += 1
            return None
        return self.job(values)

    def heed(self, comment: str) -> None:
        """Take the log's beginning from a header comment. Raises: MalformedError when another log follows."""
        match = START.fullmatch(comment)
        if not match:
            return
        seconds = int(match[1])
        if self.accounts.report.read and seconds != self.start_seconds:
            raise MalformedError("another UnixStartTime after jobs; expected one log in a file")
        self.start_seconds = seconds if seconds <= LATEST_SECONDS else 0

    def job(self, values: list[str]) -> Job:
        """Return the job of 18 values. Raises: MalformedError."""
        if values[10] not in STATES:
            raise MalformedError(f"status {values[10]!r}; expected -1 to 5")
        submitted, wait, run = (_nanoseconds(text) for text in values[1:4])
        started = None if submitted is None or wait is None or not _has_run(values) else submitted + wait
        ended = None if started is None or run is None else started + run
        kept = KEPT if self.start_seconds and started is not None else (*SINCE_START, *KEPT)
        return Job(
            system=self.system,
            job_id=_known("job", values[0]),
            user=_integer("user", values[11]),
            partition=_integer("queue", values[14]),
            state=STATES[values[10]],
            cpu_count=_count("processors", values[4]),
            submitted_ns=self.absolute(submitted),
            started_ns=self.absolute(started),
            ended_ns=self.absolute(ended),
            elapsed_seconds=None if run is None else run / SECOND_NS,
            fields={name: values[place] for place, name in kept if values[place] != UNKNOWN},
        )

    def absolute(self, since_start_ns: int | None) -> int | None:
        """Return a time in ns UTC; None when the log's beginning is unknown. Raises: MalformedError."""
        if not self.start_seconds or since_start_ns is None:
            return None
        time_ns = self.start_seconds * SECOND_NS + since_start_ns
        if time_ns > LATEST_SECONDS * SECOND_NS:
            raise MalformedError(f"{since_start_ns // SECOND_NS} seconds after the log began is after 2262")
        return time_ns

    def note(self) -> None:
        """Write the remarks into the report."""
        if self.accounts.report.read and not self.start_seconds:
            reason = "no UnixStartTime in the header: jobs have no times, but fields submit_seconds and wait_seconds"
            self.accounts.report.notes.append(reason)
        self.accounts.note()


def _has_run(values: list[str]) -> bool:
    """Return whether the job ran: one cancelled in the queue has a wait time, too, but never started."""
    return values[10] != "5" or values[3] not in (UNKNOWN, "0") or values[4] not in (UNKNOWN, "0")


def _fault(values: list[str]) -> str:
    if len(values) != len(FIELDS):
        return f"{len(values)} fields; expected {len(FIELDS)}"
    return f"not 18 numbers: {' '.join(values)[:80]!r}"


def _nanoseconds(text: str) -> int | None:
    """Return ns of seconds, whole or not; None for -1. Raises: MalformedError."""
    if text == UNKNOWN:
        return None
    if text.startswith("-") and text != "-0":
        raise MalformedError(f"{text} seconds; expected 0 or more, or -1 when unknown")
    whole, _point, part = text.partition(".")
    return int(whole) * SECOND_NS + int(f"{part:0<9}"[:9])


def _integer(name: str, text: str) -> str | None:
    """Return the text of a whole number; None for -1. Raises: MalformedError."""
    if not INTEGER.fullmatch(text):
        raise MalformedError(f"{name} {text}; expected a whole number, or -1 when unknown")
    return None if text == UNKNOWN else text


def _known(name: str, text: str) -> str:
    number = _integer(name, text)
    if number is None:
        raise MalformedError(f"{name} {text}; expected a number")
    return number


def _count(name: str, text: str) -> int | None:
    number = _integer(name, text)
    return None if number is None else int(number)
