"""Scheduler jobs."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from crosswind.data.schema.facts import Facts, count_fact

RESOURCES = ("AllocTRES", "TRES")  # fields that have Slurm's trackable resources
GPUS = ("ngpus", "Resource_List.ngpus")  # fields that have their number alone: Flux, PBS
GPU = re.compile(r"(?:^|,)gres/gpu(?::([^=,]+))?=(\d{1,7})(?=,|$)")


@dataclass(frozen=True)
class Job:
    """One allocation as the scheduler accounts for it; times in ns UTC, None when unknown; the id is text."""

    system: str
    job_id: str
    name: str = ""
    user: str | None = None
    account: str | None = None
    partition: str | None = None
    state: str = ""
    exit_code: int | None = None
    signal: int | None = None
    nodes: tuple[str, ...] = ()
    node_count: int | None = None
    cpu_count: int | None = None
    submitted_ns: int | None = None
    started_ns: int | None = None
    ended_ns: int | None = None
    elapsed_seconds: float | None = None
    energy_joules: float | None = None
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def seconds(self) -> float | None:
        """Run time in seconds, as the scheduler counts it or by its clock."""
        if self.elapsed_seconds is not None or self.started_ns is None or self.ended_ns is None:
            return self.elapsed_seconds
        return (self.ended_ns - self.started_ns) * 1e-9

    @property
    def facts(self) -> Facts:
        """The nodes and accelerators that it had, by its account; no model where it had several, or names none.

        Source: Slurm's sacct(1), AllocTRES: `gres/gpu:a100=8,gres/gpu=8`.
        """
        counts = Counter[str]()
        for name in RESOURCES:
            for model, count in GPU.findall(self.fields.get(name, "")):
                counts[model] = max(counts[model], int(count))
        total = counts.pop("", 0) or sum(counts.values())
        total = total or next((count for name in GPUS if (count := count_fact(self.fields.get(name)))), 0)
        nodes = count_fact(self.node_count)
        return Facts.of_valid(
            {
                "accelerator": next(iter(counts)) if len(counts) == 1 else None,
                "accelerators": total or None,
                "accelerators_per_node": total // nodes if total and nodes and total % nodes == 0 else None,
                "node_count": nodes,
            }
        )
