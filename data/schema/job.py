"""Scheduler jobs."""

from collections.abc import Mapping
from dataclasses import dataclass, field


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
