"""Polling Slurm's accounting into the store: one query at a time, for what is new since the last one."""

import os
import random
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from crosswind.data.lake.locks import alone
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.job import Job
from crosswind.data.store.job_changes import put_changed
from crosswind.data.store.jobs import job_table
from crosswind.data.store.store import Store
from crosswind.ingest.reader.reader import Context, Record, Report
from crosswind.ingest.readers.slurm.sacct import SacctReader, sacct_command

SOURCE = "slurm"
FIRST_SECONDS = 7 * 86_400  # how far back the first look goes
WINDOW_SECONDS = 86_400  # of one query: slurmdbd holds a whole answer in memory
OVERLAP_SECONDS = 3_600  # queried again: ends arrive out of order
LATE_SECONDS = 86_400  # so long may slurmdbd be away: slurmctld keeps its messages
PAUSE_SECONDS = 1.0  # between two queries
TIMEOUT_SECONDS = 600.0
LOOK_SECONDS = 0.2
LONGEST_DELAY_SECONDS = 3_600.0
JOBS_AT_ONCE = 20_000
ABSENT = (
    "{}: no such program: run this where Slurm's commands are, such as on a login node, with them on PATH; "
    "or write the accounts there to a file and store that with `crosswind ingest FILE` (its --help has the command)"
)


class Accounting(Protocol):
    """A source of the accounts of jobs in a span of time."""

    def answer(self, start: int, end: int, into: Path) -> None:
        """Write sacct's output to a file; times in seconds since 1970. Raises: UnavailableError."""
        ...


@dataclass(frozen=True)
class Sacct:
    """Slurm's own program."""

    program: str = "sacct"
    timeout_seconds: float = TIMEOUT_SECONDS
    stop: threading.Event = field(default_factory=threading.Event)  # set when the answer is no longer wanted

    def answer(self, start: int, end: int, into: Path) -> None:
        """Run it once. Raises: UnavailableError when it is absent, fails, or does not answer in time."""
        command = [self.program, *_arguments(start, end)]
        environment = {**os.environ, "TZ": "UTC", "SLURM_TIME_FORMAT": "%s"}
        with into.open("wb") as output, tempfile.TemporaryFile() as said:
            try:
                process = subprocess.Popen(
                    command,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=said,
                    start_new_session=True,
                )
            except FileNotFoundError as error:
                raise UnavailableError(ABSENT.format(self.program)) from error
            status = self._ended(process)
            said.seek(0)
            if status:
                words = said.read(2000).decode(errors="replace").strip().splitlines()
                raise UnavailableError(f"{self.program}: exit code {status}: {(words or ['it said nothing'])[0]}")

    def _ended(self, process: subprocess.Popen[bytes]) -> int:
        deadline = time.monotonic() + self.timeout_seconds
        try:
            while process.poll() is None:
                if self.stop.is_set():
                    raise UnavailableError(f"{self.program}: was not waited for")
                if time.monotonic() > deadline:
                    raise UnavailableError(f"{self.program}: no answer in {self.timeout_seconds:g} s")
                with suppress(subprocess.TimeoutExpired):
                    process.wait(LOOK_SECONDS)
            return process.returncode
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _arguments(start: int, end: int) -> list[str]:
    """Return the arguments for sacct; of a requeued job only its present account, which counts."""
    begin, until = (f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}" for seconds in (start, end))
    words = sacct_command(begin)
    options = [word for word in words[words.index("sacct") + 1 :] if word != "--duplicates"]
    return [*options, f"--endtime={until}"]


@dataclass
class Polled:
    """The outcome of one poll."""

    since_seconds: int
    questions: int = 0
    accounts: int = 0  # of jobs; one that ran for days is in the answer of every day
    changed: int = 0
    skipped: int = 0
    reports: list[Report] = field(default_factory=list)


@dataclass
class Poller:
    """Polls the accounting, and stores how far it got."""

    store: Store
    system: str
    slurm: Accounting = field(default_factory=Sacct)
    pause_seconds: float = PAUSE_SECONDS

    def poll(self, since_seconds: int | None = None) -> Polled:
        """Store what changed since the last poll, or since a time; the same again changes nothing.

        Raises: UnavailableError; earlier answers are stored all the same.
        """
        with alone(self.store.home / ".sync-slurm.lock") as is_alone:
            if not is_alone:
                raise UnavailableError("another `crosswind sync slurm` of this store is at work")
            return self._poll(since_seconds)

    def _poll(self, since_seconds: int | None) -> Polled:
        now, reached = int(time.time()), self._reached()
        start = since_seconds if since_seconds is not None else reached or now - FIRST_SECONDS
        polled = Polled(start)
        for begin in range(start, now, WINDOW_SECONDS):
            end = min(begin + WINDOW_SECONDS, now)
            if polled.questions:
                time.sleep(self.pause_seconds)
            latest = self._take(begin, end, polled)
            self._note(max(latest, end - LATE_SECONDS) - OVERLAP_SECONDS)
        return polled

    def _reached(self) -> int | None:
        with self.store.catalog.read() as session:
            reached_ns = session.positions.of(SOURCE, self.system)
        return None if reached_ns is None else reached_ns // 1_000_000_000

    def _note(self, reached: int) -> None:
        with self.store.catalog.write() as session:
            known_ns = session.positions.of(SOURCE, self.system) or 0
            session.positions.put(SOURCE, self.system, max(known_ns, reached * 1_000_000_000))

    def _take(self, begin: int, end: int, polled: Polled) -> int:
        """Query one span. Return the last end of a job in it, or 0."""
        latest = 0
        with tempfile.TemporaryDirectory(dir=self.store.home, prefix=".sync-slurm-") as folder:
            answer = Path(folder) / "sacct.txt"
            self.slurm.answer(begin, end, answer)
            report = Report("sacct", SacctReader.name)
            for table in _tables(SacctReader().read(answer, report, Context(self.system, UTC))):
                polled.changed += put_changed(self.store, table)
                latest = max(latest, pc.max(table["ended_ns"]).as_py() or 0)
        polled.questions += 1
        polled.accounts += report.read
        polled.skipped += report.skipped
        polled.reports += [report] if report.skipped else []
        return min(latest // 1_000_000_000, end)


def _tables(records: Iterator[Record]) -> Iterator[pa.Table]:
    jobs: list[Job] = []
    for record in records:
        if isinstance(record, pa.Table):
            yield record
        elif isinstance(record, Job):
            jobs.append(record)
        if len(jobs) == JOBS_AT_ONCE:
            yield job_table(jobs, reported_ns=0)
            jobs = []
    if jobs:
        yield job_table(jobs, reported_ns=0)


def delay_seconds(every: float, failures: int, chance: random.Random) -> float:
    """Return how long to wait: jittered, so that many do not query at once; longer after every failure in a row."""
    longest = max(every, LONGEST_DELAY_SECONDS)
    return min(every * 2.0 ** min(failures, 32), longest) * chance.uniform(0.9, 1.1)
