"""Jobs in Slurm's controller, as `squeue --json` and `scontrol show jobs --json` write them."""

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
from crosswind.ingest.readers.slurm.slurm_jobs import Remarks, as_happened

TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
CONTROLLERS = re.compile(r'"accrue_time"\s*:')
FIRST_JOB = re.compile(r'"jobs"\s*:\s*\[\s*\{')


@dataclass(frozen=True)
class SqueueJsonReader:
    """One job per record, without expected times."""

    name: ClassVar[str] = "squeue_json"
    description: ClassVar[str] = "Slurm's present jobs, written by squeue or scontrol with --json"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether a list of jobs begins whose first one has fields of the controller alone."""
        text = plain_head(head)
        first = FIRST_JOB.search(text) if text.lstrip().startswith("{") else None
        if first is None or not CONTROLLERS.search(text, first.end()):
            return False
        before = TEXT.sub("", text[: first.start()])
        return sum(map(before.count, "{[")) - sum(map(before.count, "}]")) == 1  # of the outermost object

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Job]:
        """Yield the jobs in the file's order. Raises: MalformedError (no JSON object), UnavailableError."""
        remarks = Remarks(report, Clock(context.zone))
        records = ((item.line, item.text, item) for item in items(path, report, "jobs"))
        jobs = converted(records, lambda item: _job(item, context.system, remarks.clock), report)
        yield from map(remarks.seen, map(as_happened, jobs))
        remarks.note()


def _job(item: Item, system: str, clock: Clock) -> Job:
    """Return the job of one record. Raises: MalformedError."""
    record = item.value
    if not isinstance(record, Mapping):
        raise MalformedError(f"expected a job, found {item.text[:40]!r}")
    job_id = slurm.number("job_id", record.get("job_id"))
    if not job_id:
        raise MalformedError("job_id is missing")
    state, words = slurm.state(record.get("job_state"))
    code, signal = slurm.exit_code(record.get("exit_code"))
    started = slurm.time_ns(clock, "start_time", record.get("start_time"))
    ended = slurm.time_ns(clock, "end_time", record.get("end_time"))
    return Job(
        system=system,
        job_id=str(job_id),
        name=slurm.text("name", record.get("name")),
        user=slurm.text("user_name", record.get("user_name")) or None,
        account=slurm.text("account", record.get("account")) or None,
        partition=slurm.text("partition", record.get("partition")) or None,
        state=state,
        exit_code=code,
        signal=signal,
        nodes=hostlist.expand(slurm.text("nodes", record.get("nodes"))),
        node_count=slurm.number("node_count", record.get("node_count")),
        cpu_count=slurm.number("cpus", record.get("cpus")),
        submitted_ns=slurm.time_ns(clock, "submit_time", record.get("submit_time")),
        started_ns=started,
        ended_ns=ended,
        fields=_fields(record, str(job_id), words if words != state else ""),
    )


def _fields(record: Mapping[str, object], job_id: str, state: str) -> dict[str, str]:
    """Return further facts; none that may identify the user, as paths and comments do."""
    texts = {
        "JobID": _shown_id(record, job_id),
        "State": state,
        "QOS": slurm.text("qos", record.get("qos")),
        "AllocTRES": slurm.text("tres_alloc_str", record.get("tres_alloc_str")),
        "ReqTRES": slurm.text("tres_req_str", record.get("tres_req_str")),
        "Reason": slurm.text("state_reason", record.get("state_reason")),
        "Restarts": str(slurm.number("restart_cnt", record.get("restart_cnt")) or ""),
    }
    return {name: text for name, text in texts.items() if text and text != "None"}


def _shown_id(record: Mapping[str, object], job_id: str) -> str:
    """Return the id as sacct shows it: 8_1 of an array, 8+1 of a heterogeneous job."""
    array = slurm.number("array_job_id", record.get("array_job_id"))
    task = slurm.number("array_task_id", record.get("array_task_id"))
    tasks = slurm.text("array_task_string", record.get("array_task_string"))
    leader = slurm.number("het_job_id", record.get("het_job_id"))
    offset = slurm.number("het_job_offset", record.get("het_job_offset"))
    if array and (tasks or task is not None):
        return f"{array}_[{tasks}]" if tasks else f"{array}_{task}"
    return f"{leader}+{offset}" if leader and offset is not None else job_id
