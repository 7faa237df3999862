"""The lab's records of a run: its plan, its end, and the truth of its faults."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from crosswind.data.schema.run import RunState
from crosswind.ingest.lab.casting import Part
from crosswind.ingest.lab.injection import Truth
from crosswind.ingest.lab.plans.plan import PlannedRun
from crosswind.ingest.spool.spool import SpoolWriter

NO_INJECTION = "none"


@dataclass(frozen=True)
class LabRun:
    """One run as the lab has it; the tags say why it was made."""

    part: Part
    system: str
    tags: dict[str, str]

    def record(self, state: RunState, **facts: object) -> dict[str, object]:
        """Return the record for the spool."""
        _, order = self.part.ranks[0]
        return {
            "run_id": order.run_id,
            "workload": order.workload,
            "system": self.system,
            "world_size": order.world_size,
            "configuration": order.configuration(),
            "nodes": self.part.nodes,
            "tags": self.tags,
            "state": state,
            **facts,
        }


def tags_of(planned: PlannedRun, plan: str, neighbour: str | None) -> dict[str, str]:
    """Return the purpose of a run: its place in the plan, and the planned faults; the truth is in the injections."""
    tags = {
        "lab": "yes",
        "plan": plan,
        "position": f"{planned.number:04d}",
        "split": planned.split,
        "injected": "; ".join(fault.words(planned.steps) for fault in planned.faults) or NO_INJECTION,
    }
    return tags | ({"neighbour": neighbour} if neighbour else {})


def neighbour_tags(plan: str, run_id: str) -> dict[str, str]:
    """Return the tags of a neighbour: the run for which it is there."""
    return {"lab": "yes", "plan": plan, "neighbour_of": run_id}


def write_ended(spool: Path, runs: Sequence[LabRun], truths: Sequence[Truth]) -> None:
    """Write runs that came to their end; the truth is that of the first. Raises: UnavailableError."""
    _write(spool, runs[0].part.run_id, [run.record(RunState.COMPLETED) for run in runs], truths)


def write_failed(spool: Path, runs: Sequence[LabRun], began_ns: int, truths: Sequence[Truth]) -> None:
    """Write runs whose workers died or hung, or whose faults could not be switched, with the faults of theirs.

    Raises: UnavailableError.
    """
    times = {"started_ns": began_ns, "ended_ns": time.time_ns()}
    _write(spool, runs[0].part.run_id, [run.record(RunState.FAILED, **times) for run in runs], truths)


def _write(spool: Path, run_id: str, records: Iterable[Mapping[str, object]], truths: Sequence[Truth]) -> None:
    with SpoolWriter(spool, f"{run_id}-lab") as writer:
        for record in records:
            writer.append_record("run", record)
        for truth in truths:
            writer.append_record("injection", {"run_id": run_id, **asdict(truth)})
