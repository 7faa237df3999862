"""Jobs from the accounting logs of PBS Professional, OpenPBS and Torque."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, NamedTuple

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.job import Job
from crosswind.ingest.reader.lines import numbered_lines, plain_head
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.schedulers import pbs_values as pbs
from crosswind.ingest.readers.schedulers.accounts import Accounts, epoch_nanoseconds

RECORD = re.compile(r"(\d\d)/(\d\d)/(\d{4}) (\d\d:\d\d:\d\d);([A-Za-z]);([^;]{0,512});(.*)", re.ASCII)
JOB_ID = re.compile(r"[0-9]{1,18}(?:\[[0-9]{0,18}\]|-[0-9]{1,18})?(?:\.[A-Za-z0-9._-]{1,255})?")
STATES = {  # by the newest record of a job that has not ended
    "Q": "PENDING",
    "S": "RUNNING",
    "s": "RUNNING",  # pruned: less than reserved at first
    "T": "RUNNING",  # from a checkpoint
    "R": "REQUEUED",
    "z": "SUSPENDED",
    "r": "RUNNING",
    "C": "CHECKPOINTED",
    "D": "CANCELLED",
    "A": "CANCELLED",
    "M": "MOVED",
}
PLACES = {"Q": 0, "S": 1, "s": 1, "T": 1, "R": 1, "z": 2, "r": 2, "C": 2, "D": 3}  # one record is kept in each
REPLACED = ((0,), (1, 2), (2,), (3,))  # a job that starts again is no longer suspended
LAST = ("E", "A", "M")  # nothing comes after these
OTHER_EVENTS = "ucePpa"  # phases, provisioning and alterations: the last record has their outcome
LINE_OVERHEAD = 500  # of Python's objects
NOT_OF_JOBS = "LUYBFKk"  # licenses and reservations


@dataclass(frozen=True)
class PbsReader:
    """One job for all records of its id: its end, or its newest record.

    Source: OpenPBS, src/server/accounting.c and src/include/acct.h; Torque administrator guide, accounting records.
    """

    name: ClassVar[str] = "pbs"
    description: ClassVar[str] = "Accounting logs of PBS Professional, OpenPBS and Torque (also gzip)"
    waiting_limit: int = 1 << 26  # characters of jobs that have not ended; one too many is only repeated

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether the first line is a time, a letter and an id set apart by `;`."""
        return RECORD.match(plain_head(head).lstrip()) is not None

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Job]:
        """The jobs in the order of their ends, then those without one. Raises: UnavailableError, MalformedError."""
        reading = Reading(report, context.system, Clock(context.zone), self.waiting_limit)
        yield from reading.jobs(numbered_lines(path, report))


class Line(NamedTuple):
    """One record, not yet parsed."""

    number: int
    text: str
    letter: str
    time: str
    values: str


@dataclass
class Reading:
    """One pass over the lines of a log."""

    report: Report
    system: str
    clock: Clock
    waiting_limit: int
    accounts: Accounts = field(init=False)
    waiting: OrderedDict[str, dict[int, Line]] = field(default_factory=OrderedDict)  # by job and place
    waiting_size: int = 0

    def __post_init__(self) -> None:
        self.accounts = Accounts(self.report)

    def jobs(self, lines: Iterator[tuple[int, str]]) -> Iterator[Job]:
        """Yield the jobs, each as soon as its end was read."""
        for number, text in lines:
            try:
                job = self.take(number, text)
            except MalformedError as error:
                self.report.skip(number, text, str(error))
                continue
            if job:
                yield self.accounts.counted(job)
        while self.waiting:
            if job := self.unended():
                yield self.accounts.counted(job)
        self.accounts.note(self.clock)

    def take(self, number: int, text: str) -> Job | None:
        """Take one line. Return the job that it ends. Raises: MalformedError."""
        match = RECORD.fullmatch(text.rstrip())
        if not match:
            raise MalformedError("no record; expected MM/DD/YYYY HH:MM:SS;letter;id;values")
        month, day, year, clock, letter, job_id, values = match.groups()
        if reason := _left_out(letter, job_id):
            self.accounts.remarks[reason] += 1
            return None
        if not JOB_ID.fullmatch(job_id):
            raise MalformedError(f"job id {job_id[:40]!r}; expected 123.server, 123[4].server or 123-4.server")
        return self.taken(job_id, Line(number, text, letter, f"{year}-{month}-{day}T{clock}", values))

    def taken(self, job_id: str, line: Line) -> Job | None:
        """Keep the record, or end the job with it. Raises: MalformedError."""
        if line.letter not in LAST:
            if line.letter == "D" and job_id in self.accounts.seen and job_id not in self.waiting:
                self.accounts.remarks["records of deletions come after their job's end"] += 1
                return None
            return self.keep(job_id, line)
        before = self.waiting.get(job_id, {})
        job = self.last_account(job_id, line, before)
        self.forgotten(job_id)  # now, as a malformed record ends nothing
        self.accounts.remarks["records folded into their jobs"] += bool(before)
        return job

    def last_account(self, job_id: str, line: Line, before: dict[int, Line]) -> Job:
        """Return the job that a record ends. Raises: MalformedError."""
        if line.letter != "E":
            return self.job(job_id, line, self.merged(before) | self.values_of(line))
        job = self.job(job_id, line, pbs.pairs(line.values))
        return _cancelled(job, self.values_of(before[3])) if 3 in before else job

    def keep(self, job_id: str, line: Line) -> Job | None:
        """Remember the record until the job's end. Return a job that waited too long."""
        if line.letter not in PLACES:
            raise MalformedError(f"record {line.letter!r}; expected one of {', '.join([*PLACES, *LAST])}")
        if job_id in self.waiting:
            self.accounts.remarks["records folded into their jobs"] += 1
        kept = self.waiting.setdefault(job_id, {})
        place = PLACES[line.letter]
        gone = [kept.pop(replaced) for replaced in REPLACED[place] if replaced in kept]
        self.waiting_size += _size([line]) - _size(gone)
        kept[place] = line
        return self.unended() if self.waiting_size > self.waiting_limit else None

    def forgotten(self, job_id: str) -> dict[int, Line]:
        """Return the records of a job, and forget them."""
        kept = self.waiting.pop(job_id, {})
        self.waiting_size -= _size(kept.values())
        return kept

    def unended(self) -> Job | None:
        """Return the job that waits longest for its end, as far as it is known; None when its records are malformed."""
        job_id = next(iter(self.waiting))
        kept = self.forgotten(job_id)
        while kept:
            last = kept[max(kept)]
            try:
                return self.job(job_id, last, self.merged(kept))
            except MalformedError as error:
                self.report.skip(last.number, last.text, str(error))
                del kept[max(kept)]
        return None

    def merged(self, kept: dict[int, Line]) -> dict[str, str]:
        """Return the values of all kept records; the newest count."""
        values: dict[str, str] = {}
        for place in sorted(kept):
            values |= self.values_of(kept[place])
        return values

    def values_of(self, line: Line) -> dict[str, str]:
        """Return the values of one record; deletions and abortions give their reason in their own words."""
        values = pbs.pairs(line.values)
        if line.letter == "Q":
            values.setdefault("queued", line.time)  # Torque has no more of it
        elif line.letter == "A" and line.values and not values:
            values["reason"] = line.values
        return values

    def job(self, job_id: str, line: Line, rest: dict[str, str]) -> Job:
        """Return the job of these values, of which `line` is the newest record. Raises: MalformedError."""
        status = pbs.exit_status(rest.get("Exit_status"))
        code, signal = pbs.code_and_signal(status)
        nodes, cpus = pbs.hosts(rest.pop("exec_host")) if rest.get("exec_host") else ((), None)
        queued = rest.pop("queued", "")
        submitted, started, ended = (epoch_nanoseconds(name, rest.pop(name, "")) for name in ("ctime", "start", "end"))
        return Job(  # its last argument is the rest of the values
            system=self.system,
            job_id=job_id,
            name=rest.pop("jobname", ""),
            user=rest.pop("user", "") or None,
            account=rest.pop("account", "") or None,
            partition=rest.pop("queue", "") or None,
            state=pbs.ended_state(status) if line.letter == "E" else STATES[line.letter],
            exit_code=code,
            signal=signal,
            nodes=nodes,
            node_count=len(nodes) or None,
            cpu_count=cpus,
            submitted_ns=submitted or self.clock.nanoseconds("time", queued),
            started_ns=started,
            ended_ns=ended or self.ended(line, started),
            elapsed_seconds=pbs.duration_seconds("walltime", rest.pop("resources_used.walltime", None)),
            fields={"record": line.letter} | {name: text for name, text in rest.items() if text},
        )

    def ended(self, line: Line, started: int | None) -> int | None:
        """Return the end of a job that never ran, by the record's own time; one that ran ends with an `E`."""
        is_end = line.letter == "A" or (line.letter == "D" and started is None)
        return self.clock.nanoseconds("time", line.time) if is_end else None


def _size(lines: Iterable[Line]) -> int:
    """Return about the number of characters of records."""
    return sum(2 * len(line.text) + LINE_OVERHEAD for line in lines)


def _left_out(letter: str, job_id: str) -> str:
    """Return why a record is no account of one job; empty when it is."""
    if letter in NOT_OF_JOBS:
        return "records of licenses and reservations, which are no jobs"
    if "[]" in job_id:
        return "records of whole job arrays: their elements have records of their own"
    return "records of phases, provisioning and alterations" if letter in OTHER_EVENTS else ""


def _cancelled(job: Job, deletion: dict[str, str]) -> Job:
    """Return the ended job as one that was deleted."""
    who = {"requestor": deletion["requestor"]} if "requestor" in deletion else {}
    return replace(job, state="CANCELLED", fields=dict(job.fields) | who)
