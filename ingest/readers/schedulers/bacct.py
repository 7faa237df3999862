"""Jobs from LSF as `bacct -l` prints them."""

import re
from calendar import monthrange
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.job import Job
from crosswind.ingest.reader.lines import numbered_lines, plain_head
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.schedulers.accounts import Accounts
from crosswind.ingest.readers.schedulers.bacct_blocks import JOB, LONGEST, Block, Event, blocks, named_values
from crosswind.ingest.readers.schedulers.lsf import STATES, hosts

BEGINNINGS = ("Accounting information about jobs", "Job <", "-----")
COMPLETED = re.compile(r"Completed <(done|exit)>(?:; (TERM_[A-Z_]{1,40})\b)?")
DISPATCHED = re.compile(r"(?:\[[0-9]+\] )?[Dd]ispatched (?:to|[0-9]+ Task\(s\) on Host\(s\)) ")
SLOTS = re.compile(r"Allocated [0-9]+ Slot\(s\) on Host\(s\) ")
AFTER_HOSTS = re.compile(r", (?:Effective|Allocated) ")
IN_BRACKETS = re.compile(r"<([^<>]*)>")
SECONDS = re.compile("[0-9]{1,12}")
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
YEARS = 40  # back from the file's: 29 February is the same weekday every 28 years, but for 1900 and 2100
FIELDS = {  # in the words of lsb.acct, for the same facts
    "Command": "command",
    "Mail": "mailUser",
    "Share group charged": "chargedSAAP",
    "Application": "app",
    "Submitted from host": "fromHost",
    "CWD": "cwd",
    "Input File": "inFile",
    "Output File": "outFile",
    "Error File": "errFile",
    "Requested Resources": "resReq",
    "Effective RES_REQ": "effectiveResReq",
    "Service Class": "sla",
    "License Project": "licenseProject",
    "Job Group": "jobGroup",
}
STATUSES = {"done": "DONE", "exit": "EXIT"}
NO_YEAR = "times name no year: it is the newest with that weekday before the file was last changed; LSB_DISPLAY_YEAR=Y"


@dataclass(frozen=True)
class BacctReader:
    """One job for each block.

    Source: IBM Spectrum LSF 10.1, command reference, bacct; configuration reference, LSB_DISPLAY_YEAR.
    """

    name: ClassVar[str] = "bacct"
    description: ClassVar[str] = "LSF's accounting as bacct -l prints it (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether it begins as bacct does, and names a job and its sums; `bjobs -l` and `bhist -l` do not."""
        text = plain_head(head).lstrip()
        is_begun = text.startswith(BEGINNINGS) and "Accounting information about " in text
        return is_begun and any(JOB.match(line) for line in text.split("\n"))

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Job]:
        """Yield the jobs in the file's order. Raises: UnavailableError, MalformedError."""
        try:
            changed = datetime.fromtimestamp(path.stat().st_mtime, context.zone)
        except OSError as error:
            raise UnavailableError(f"{path}: {error.strerror}") from error
        latest = changed.replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        reading = Reading(context.system, Accounts(report), Clock(context.zone), latest)
        yield from reading.accounts.jobs(blocks(numbered_lines(path, report)), reading.job)
        reading.accounts.note(reading.clock)


@dataclass
class Reading:
    """One pass over the blocks."""

    system: str
    accounts: Accounts
    clock: Clock
    latest: datetime  # the last possible day, in the zone of its times

    def job(self, block: Block) -> Job:
        """Return the job of a block. Raises: MalformedError."""
        if block.size > LONGEST:
            raise MalformedError(f"longer than {LONGEST} characters")
        events, values, totals = list(block.events()), named_values(block.beginning), block.totals()
        submitted = _last(events, re.compile("Submitted "))
        dispatched, ended = _last(events, DISPATCHED), _last(events, COMPLETED)
        end = COMPLETED.match(ended.text) if ended else None
        if submitted is None or end is None:
            raise MalformedError("no time of submission and completion; expected the output of bacct -l, whole")
        nodes, slots = _hosts(dispatched.text) if dispatched else ((), 0)
        is_done, reason = end[1] == "done", end[2] or ""
        others = values | named_values(submitted.text) | (named_values(dispatched.text) if dispatched else {})
        return Job(
            system=self.system,
            job_id=block.job_id,
            name=values.get("Job Name", ""),
            user=values.get("User") or None,
            account=values.get("Project") or None,
            partition=values.get("Queue") or None,
            state="COMPLETED" if is_done else STATES.get(reason, "FAILED"),
            exit_code=0 if is_done else None,
            nodes=nodes,
            node_count=len(nodes) or None,
            cpu_count=slots or None,
            submitted_ns=self.nanoseconds("submission", submitted),
            started_ns=self.nanoseconds("dispatch", dispatched),
            ended_ns=self.nanoseconds("completion", ended),
            elapsed_seconds=_run_seconds(totals) if dispatched else None,
            fields={FIELDS[name]: text.strip() for name, text in others.items() if name in FIELDS and text.strip()}
            | {name: text for name, text in totals.items() if name != "STATUS" and text != "-"}
            | {"jStatus": STATUSES[end[1]]}
            | ({"exitInfo": reason} if reason else {})
            | ({} if submitted.year else {"year_from": "the weekday and the file's modification time: none is given"}),
        )

    def nanoseconds(self, name: str, event: Event | None) -> int | None:
        """Return the time of an event in ns; None for no event. Raises: MalformedError."""
        if event is None:
            return None
        if event.day[:3] not in DAYS or event.day[4:7] not in MONTHS:
            raise MalformedError(f"{name} {event.day!r} is no day; expected one such as Mon Oct  8")
        self.accounts.remarks[NO_YEAR] += not event.year
        year = event.year or newest_year(event.day, self.latest)
        if not year:
            raise MalformedError(f"{name} {event.day!r} is no day of the years up to {self.latest.year}")
        month, day = MONTHS.index(event.day[4:7]) + 1, int(event.day[8:])
        return self.clock.nanoseconds(name, f"{year}-{month:02}-{day:02}T{event.time}")


@lru_cache(maxsize=1000)
def newest_year(text: str, latest: datetime) -> int | None:
    """Return the newest year in which `Mon Oct  8` is that weekday and not after `latest`; None for no day."""
    weekday, month, day = DAYS.index(text[:3]), MONTHS.index(text[4:7]) + 1, int(text[8:])
    for year in range(latest.year, latest.year - YEARS, -1):
        if 0 < day <= monthrange(year, month)[1]:
            moment = latest.replace(year=year, month=month, day=day)
            if moment.weekday() == weekday and moment <= latest:
                return year
    return None


def _last(events: list[Event], form: re.Pattern[str]) -> Event | None:
    """Return the newest of a kind: a requeued job was dispatched more than once."""
    return next((event for event in reversed(events) if form.match(event.text)), None)


def _hosts(dispatch: str) -> tuple[tuple[str, ...], int]:
    """Return host names and slots of a dispatch. Raises: MalformedError."""
    allocated = SLOTS.search(dispatch)
    text = dispatch[allocated.end() if allocated else 0 :]
    end = AFTER_HOSTS.search(text)
    return hosts(IN_BRACKETS.findall(text[: end.start()] if end else text))


def _run_seconds(totals: Mapping[str, str]) -> float | None:
    """Return seconds between dispatch and completion, across changes of the clock. Raises: MalformedError."""
    seconds = [totals[name] for name in ("TURNAROUND", "WAIT") if totals.get(name, "-") != "-"]
    if len(seconds) < 2:
        return None
    for text in seconds:
        if not SECONDS.fullmatch(text):
            raise MalformedError(f"TURNAROUND or WAIT {text[:40]!r}; expected whole seconds")
    turnaround, wait = (int(text) for text in seconds)
    if wait > turnaround:
        raise MalformedError(f"WAIT {wait}; expected at most TURNAROUND {turnaround}")
    return float(turnaround - wait)
