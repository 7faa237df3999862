"""Jobs that Slurm's controller still remembers, as `squeue --json` and `scontrol show jobs --json` write them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from crosswind.data import hostlist
from crosswind.data.errors import MalformedError
from crosswind.data.job import Job
from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.json_items import Item, items
from crosswind.ingest.readers.lines import plain_head
from crosswind.ingest.readers.reader import Context, Report
from crosswind.ingest.readers.slurm import slurm_json as slurm
from crosswind.ingest.readers.slurm.slurm_jobs import Remarks, known

TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
CONTROLLERS = re.compile(r'"accrue_time"\s*:')
FIRST_JOB = re.compile(r'"jobs"\s*:\s*\[\s*\{')


@dataclass(frozen=True)
class SqueueJsonReader:
    """One job per record; times that are only expected are left out."""

    name: ClassVar[str] = "squeue_json"
    description: ClassVar[str] = "Slurm's present jobs, written by squeue or scontrol with --json"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name tells nothing
        """Whether a list of jobs begins whose first one has what only the controller tells."""
        text = plain_head(head)
        first = FIRST_JOB.search(text) if text.lstrip().startswith("{") else None
        if first is None or not CONTROLLERS.search(text, first.end()):
            return False
        before = TEXT.sub("", text[: first.start()])
        return sum(map(before.count, "{[")) - sum(map(before.count, "}]")) == 1  # of the outermost object

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Job]:
        """The jobs in the file's order. Raises: MalformedError (no JSON object), UnavailableError."""
        remarks = Remarks(report, Clock(context.zone))
        for item in items(path, report, "jobs"):
            try:
                job = known(_job(item, context.system, remarks.clock))
            except MalformedError as error:
                report.skip(item.line, item.text, str(error))
                continue
            yield remarks.seen(job)
        remarks.note()


def _job(item: Item, system: str, clock: Clock) -> Job:
    """The job of one record. Raises: MalformedError."""
    told = item.value
    if not isinstance(told, Mapping):
        raise MalformedError(f"expected a job, found {item.text[:40]!r}")
    job_id = slurm.number("job_id", told.get("job_id"))
    if not job_id:
        raise MalformedError("job_id is missing")
    state, words = slurm.state(told.get("job_state"))
    code, signal = slurm.exit_code(told.get("exit_code"))
    started = slurm.time_ns(clock, "start_time", told.get("start_time"))
    ended = slurm.time_ns(clock, "end_time", told.get("end_time"))
    return Job(
        system=system,
        job_id=str(job_id),
        name=slurm.text("name", told.get("name")),
        user=slurm.text("user_name", told.get("user_name")) or None,
        account=slurm.text("account", told.get("account")) or None,
        partition=slurm.text("partition", told.get("partition")) or None,
        state=state,
        exit_code=code,
        signal=signal,
        nodes=hostlist.expand(slurm.text("nodes", told.get("nodes"))),
        node_count=slurm.number("node_count", told.get("node_count")),
        cpu_count=slurm.number("cpus", told.get("cpus")),
        submitted_ns=slurm.time_ns(clock, "submit_time", told.get("submit_time")),
        started_ns=started,
        ended_ns=ended,
        fields=_fields(told, str(job_id), words if words != state else ""),
    )


def _fields(told: Mapping[str, object], job_id: str, state: str) -> dict[str, str]:
    """What else is worth keeping; not what may tell who the user is, as paths and comments do."""
    texts = {
        "JobID": _shown_id(told, job_id),
        "State": state,
        "QOS": slurm.text("qos", told.get("qos")),
        "AllocTRES": slurm.text("tres_alloc_str", told.get("tres_alloc_str")),
        "ReqTRES": slurm.text("tres_req_str", told.get("tres_req_str")),
        "Reason": slurm.text("state_reason", told.get("state_reason")),
        "Restarts": str(slurm.number("restart_cnt", told.get("restart_cnt")) or ""),
    }
    return {name: text for name, text in texts.items() if text and text != "None"}


def _shown_id(told: Mapping[str, object], job_id: str) -> str:
    """The id as sacct shows it: 8_1 of an array, 8+1 of a heterogeneous job."""
    array = slurm.number("array_job_id", told.get("array_job_id"))
    task = slurm.number("array_task_id", told.get("array_task_id"))
    tasks = slurm.text("array_task_string", told.get("array_task_string"))
    leader = slurm.number("het_job_id", told.get("het_job_id"))
    offset = slurm.number("het_job_offset", told.get("het_job_offset"))
    if array and (tasks or task is not None):
        return f"{array}_[{tasks}]" if tasks else f"{array}_{task}"
    return f"{leader}+{offset}" if leader and offset is not None else job_id
