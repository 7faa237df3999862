"""Jobs from Slurm's accounting, as `sacct --json` writes it: all versions since 21.08, whose formats differ."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema import hostlist
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.job import Job
from crosswind.ingest.reader.lines import plain_head
from crosswind.ingest.reader.reader import Context, Report, converted
from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.json_items import Item, items
from crosswind.ingest.readers.slurm import slurm_json as slurm
from crosswind.ingest.readers.slurm.slurm_jobs import Remarks, Steps

FIRST_JOB = re.compile(r'"jobs"\s*:\s*\[\s*\{')
NO_JOB = re.compile(r'"jobs"\s*:\s*\[\s*\]')
BY_SLURM = re.compile(r'"(?:openapi\\?/|data_parser/)')
STILL_GOING = ("PENDING", "RUNNING", "SUSPENDED")  # Slurm writes an exit code for these, too
START_LOST = "jobs whose start is written as when they became eligible (Slurm 21.08): it is the end less the run time"
CODE_LOST = "jobs failed with an exit code that this version of sacct writes as 0: it is unknown"


@dataclass(frozen=True)
class SacctJsonReader:
    """One job per allocation; its job steps are folded into it."""

    name: ClassVar[str] = "sacct_json"
    description: ClassVar[str] = "Slurm accounting, written by sacct --json (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether a list of jobs begins whose first one has fields of accounts alone."""
        text = plain_head(head)
        if not text.lstrip().startswith("{"):
            return False
        if FIRST_JOB.search(text):
            return '"allocation_nodes"' in text and '"association"' in text
        return bool(NO_JOB.search(text) and BY_SLURM.search(text))

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Job]:
        """Yield the jobs in the file's order. Raises: MalformedError (no JSON object), UnavailableError."""
        reading = _Reading(report, context.system, Remarks(report, Clock(context.zone)))
        records = ((item.line, item.text, item) for item in items(path, report, "jobs"))
        yield from map(reading.remarks.seen, converted(records, reading.job, report))
        reading.remarks.note()


@dataclass
class _Reading:
    """One pass over the jobs."""

    report: Report
    system: str
    remarks: Remarks

    def job(self, item: Item) -> Job:
        """Return one job with its steps. Raises: MalformedError."""
        record = item.value
        if not isinstance(record, Mapping):
            raise MalformedError(f"expected a job, found {item.text[:40]!r}")
        job = self._allocation(record)
        return self._steps(item, record.get("steps")).folded_into(job)

    def _allocation(self, record: Mapping[str, object]) -> Job:
        clock = self.remarks.clock
        state, words = slurm.state(slurm.inside(record, "state", "current"))
        code, signal = self._exit_code(state, record.get("exit_code"))
        allocated = slurm.resources("tres/allocated", slurm.inside(record, "tres", "allocated"))
        requested = slurm.resources("tres/requested", slurm.inside(record, "tres", "requested"))
        had = allocated or requested
        elapsed = slurm.number("time/elapsed", slurm.inside(record, "time", "elapsed"))
        started = self._start(record.get("time"), elapsed)
        return Job(
            system=self.system,
            job_id=_job_id(record),
            name=slurm.text("name", record.get("name")),
            user=_user(record),
            account=slurm.text("account", record.get("account")) or None,
            partition=slurm.text("partition", record.get("partition")) or None,
            state=state,
            exit_code=code,
            signal=signal,
            nodes=hostlist.expand(slurm.text("nodes", record.get("nodes"))),
            node_count=had.get("node") or slurm.number("allocation_nodes", record.get("allocation_nodes")) or None,
            cpu_count=had.get("cpu") or slurm.number("required/CPUs", slurm.inside(record, "required", "CPUs")) or None,
            submitted_ns=slurm.time_ns(clock, "time/submission", slurm.inside(record, "time", "submission")),
            started_ns=slurm.time_ns(clock, "time/start", started),
            ended_ns=slurm.time_ns(clock, "time/end", slurm.inside(record, "time", "end")),
            elapsed_seconds=None if elapsed is None else float(elapsed),
            fields=_fields(record, words if words != state else "", allocated, requested),
        )

    def _start(self, times: object, elapsed: int | None) -> int | None:
        """Return the start in seconds; plugins dbv0.0.36 and 0.0.37 write the time of eligibility there."""
        names = ("start", "eligible", "end", "suspended")
        start, eligible, end, suspended = (slurm.number(f"time/{name}", slurm.inside(times, name)) for name in names)
        if not start or start != eligible or not end or elapsed is None:
            return start
        began = end - elapsed - (suspended or 0)
        self.remarks.counts[START_LOST] += began != start
        return began

    def _exit_code(self, state: str, value: object) -> tuple[int | None, int | None]:
        if state in STILL_GOING:
            return None, None
        code, signal = slurm.exit_code(value)
        if state == "FAILED" and code == 0 and signal is None and slurm.loses_codes(value):
            self.remarks.counts[CODE_LOST] += 1
            return None, None
        return code, signal

    def _steps(self, item: Item, listed: object) -> Steps:
        """Return the job's steps; a malformed one goes to the report."""
        steps = Steps()
        for step in listed if isinstance(listed, list) else []:
            try:
                steps.add(*_figures(step))
            except MalformedError as error:
                steps.all_understood = False
                self.report.skip(item.line, item.text, f"a job step of it: {error}")
        return steps


def _job_id(record: Mapping[str, object]) -> str:
    job_id = slurm.number("job_id", record.get("job_id"))
    if not job_id:
        raise MalformedError("job_id is missing")
    return str(job_id)


def _user(record: Mapping[str, object]) -> str | None:
    user = slurm.text("user", record.get("user"))
    return user or slurm.text("association/user", slurm.inside(record, "association", "user")) or None


def _fields(
    record: Mapping[str, object], state: str, allocated: Mapping[str, int], requested: Mapping[str, int]
) -> dict[str, str]:
    """Return further facts under sacct's names; none that may identify the user, as paths and comments do."""
    eligible = slurm.number("time/eligible", slurm.inside(record, "time", "eligible"))
    limit_minutes = slurm.number("time/limit", slurm.inside(record, "time", "limit"))
    texts = {
        "JobID": _shown_id(record),
        "State": state,
        "QOS": slurm.text("qos", record.get("qos")),
        "Eligible": str(eligible) if eligible else "",
        "TimelimitRaw": str(limit_minutes) if limit_minutes else "",
        "AllocTRES": slurm.resources_text(allocated),
        "ReqTRES": slurm.resources_text(requested),
        "Reason": slurm.text("state/reason", slurm.inside(record, "state", "reason")),
        "Restarts": str(slurm.number("restart_cnt", record.get("restart_cnt")) or ""),
    }
    return {name: text for name, text in texts.items() if text and text != "None"}


def _shown_id(record: Mapping[str, object]) -> str:
    """Return the id as sacct shows it: 8_1 of an array, 8+1 of a heterogeneous job."""
    array = slurm.number("array/job_id", slurm.inside(record, "array", "job_id"))
    task = slurm.number("array/task_id", slurm.inside(record, "array", "task_id"))
    tasks = slurm.text("array/task", slurm.inside(record, "array", "task"))
    leader = slurm.number("het/job_id", slurm.inside(record, "het", "job_id"))
    offset = slurm.number("het/job_offset", slurm.inside(record, "het", "job_offset"))
    if array and task is not None:
        return f"{array}_{task}"
    if array and tasks:
        return f"{array}_[{tasks}]"
    return f"{leader}+{offset}" if leader and offset is not None else _job_id(record)


def _figures(step: object) -> tuple[str, int | None, float | None]:
    """Return name, largest memory of a task in bytes, and joules of a step. Raises: MalformedError."""
    name = slurm.inside(step, "step", "id")
    if not isinstance(name, str | int):
        raise MalformedError(f"step/id {str(name)[:40]!r}; expected a text")
    memory = slurm.resources("tres/requested/max", slurm.inside(step, "tres", "requested", "max")).get("mem")
    joules = slurm.number("statistics/energy/consumed", slurm.inside(step, "statistics", "energy", "consumed"))
    return str(name).rpartition(".")[2], memory, float(joules) if joules else None
