"""Jobs in Slurm's controller, as `scontrol show job` writes them, one line each (-o) or several."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema import hostlist
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.job import Job
from crosswind.ingest.reader.lines import numbered_lines, plain_head
from crosswind.ingest.reader.reader import Context, Report, converted
from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.slurm import slurm_values as slurm
from crosswind.ingest.readers.slurm.slurm_jobs import Remarks, as_happened

BEGINNING = re.compile(r"JobId=([0-9]{1,18}) (?:ArrayJobId=|HetJobId=|JobName=)")
FIRST_LINES = re.compile(r"JobId=[0-9]{1,18} .*JobName=.*\s+(?:HetJobIdSet=\S*\s+)?UserId=\S+\([0-9]+\) GroupId=")
NAME = re.compile(r"(?:^| )JobName=(.*?)(?: HetJobIdSet=\S* UserId=| UserId=|$)")
PAIR = re.compile(r"(?:^|\s)([A-Z][A-Za-z]*)=(\S*)")
USER = re.compile(r"(.+)\([0-9]{1,10}\)")
NEEDED = (
    *("JobId", "ArrayJobId", "ArrayTaskId", "HetJobId", "HetJobOffset", "UserId", "Account", "QOS", "JobState"),
    *("ExitCode", "RunTime", "SubmitTime", "EligibleTime", "StartTime", "EndTime", "TimeLimit", "Partition"),
    *("NodeList", "NumNodes", "NumCPUs", "TRES", "ReqTRES", "AllocTRES", "Reason", "Restarts"),
)
NOTHING = ("(null)", "N/A", "None", "Unknown")
FIRST_CHARACTERS = 4096  # in which a job's name and user are; names are shorter than 1024
LINES_LIMIT = 10_000  # of one job: `scontrol -d` writes one for each kind of node


@dataclass(frozen=True)
class ScontrolReader:
    """One job per record, without expected times."""

    name: ClassVar[str] = "scontrol"
    description: ClassVar[str] = "Slurm's present jobs, written by scontrol show job (also -o)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether the file begins as a job does: with its id, its name and its user."""
        return bool(FIRST_LINES.match(plain_head(head)[:FIRST_CHARACTERS]))

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Job]:
        """Yield the jobs in the file's order. Raises: UnavailableError, MalformedError (too large)."""
        remarks = Remarks(report, Clock(context.zone))
        records = ((record.line, record.texts[0], record) for record in _records(path, report))
        jobs = converted(records, lambda record: _job(record, context.system, remarks.clock), report)
        yield from map(remarks.seen, map(as_happened, jobs))
        remarks.note()


@dataclass
class _Record:
    """The lines of one job."""

    line: int
    texts: list[str] = field(default_factory=list)


def _records(path: Path, report: Report) -> Iterator[_Record]:
    record: _Record | None = None
    for line, text in numbered_lines(path, report):
        if BEGINNING.match(text):
            if record:
                yield record
            record = _Record(line, [text])
        elif record and len(record.texts) < LINES_LIMIT:
            record.texts.append(text)
        else:
            report.skip(line, text, "belongs to no job; expected JobId=...")
    if record:
        yield record


def _job(record: _Record, system: str, clock: Clock) -> Job:
    """Return the job of a record. Raises: MalformedError."""
    pairs = _pairs(record)
    name = NAME.search(record.texts[0])
    code, signal = slurm.exit_code(pairs.get("ExitCode", ""))
    user = USER.fullmatch(pairs.get("UserId", ""))
    return Job(
        system=system,
        job_id=pairs["JobId"],
        name=name[1] if name and name[1] != "(null)" else "",
        user=user[1] if user else None,
        account=pairs.get("Account"),
        partition=pairs.get("Partition"),
        state=slurm.state_word(pairs.get("JobState", "")),
        exit_code=code,
        signal=signal,
        nodes=hostlist.expand(pairs.get("NodeList", "")),
        node_count=_count(pairs, "NumNodes"),
        cpu_count=_count(pairs, "NumCPUs"),
        submitted_ns=clock.nanoseconds("SubmitTime", pairs.get("SubmitTime", "")),
        started_ns=clock.nanoseconds("StartTime", pairs.get("StartTime", "")),
        ended_ns=clock.nanoseconds("EndTime", pairs.get("EndTime", "")),
        elapsed_seconds=_elapsed(pairs),
        fields=_fields(pairs),
    )


def _pairs(record: _Record) -> dict[str, str]:
    """Return the needed values by name. Raises: MalformedError when names and values are ambiguous."""
    pairs: dict[str, str] = {}
    for text in record.texts:
        for name, value in PAIR.findall(text):
            if name not in NEEDED:
                continue
            if name in pairs:
                raise MalformedError(f"{name} is repeated: a name or comment of the job may hold one of them")
            pairs[name] = value
    return {name: value for name, value in pairs.items() if value and value not in NOTHING}


def _count(pairs: Mapping[str, str], name: str) -> int | None:
    """Return a count; the first one of `1-4`, which a waiting job may get. Raises: MalformedError."""
    return slurm.count(name, pairs.get(name, "").partition("-")[0])


def _elapsed(pairs: Mapping[str, str]) -> float | None:
    seconds = slurm.duration_seconds(pairs.get("RunTime", ""))
    return None if seconds is None else float(seconds)


def _fields(pairs: Mapping[str, str]) -> dict[str, str]:
    """Return further facts; none that may identify the user, as paths and comments do."""
    kept = {name: pairs.get(name, "") for name in ("QOS", "TimeLimit", "TRES", "ReqTRES", "AllocTRES", "Reason")}
    kept["JobID"] = _shown_id(pairs)
    kept["Restarts"] = pairs.get("Restarts", "").removeprefix("0")
    return {name: text for name, text in kept.items() if text}


def _shown_id(pairs: Mapping[str, str]) -> str:
    """Return the id as sacct shows it: 8_1 of an array, 8+1 of a heterogeneous job."""
    if "ArrayJobId" in pairs and "ArrayTaskId" in pairs:
        task = pairs["ArrayTaskId"]
        return f"{pairs['ArrayJobId']}_{task if task.isdigit() else f'[{task}]'}"
    if "HetJobId" in pairs and "HetJobOffset" in pairs:
        return f"{pairs['HetJobId']}+{pairs['HetJobOffset']}"
    return pairs["JobId"]
