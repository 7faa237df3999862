"""Nodes whose samples arrive."""

from dataclasses import dataclass, field

from crosswind.data.schema.answers.fields import fill_texts, text_of


@dataclass(frozen=True)
class DownSource:
    """A source that could not be read when it was last tried, and why."""

    name: str
    reason: str | None


@dataclass(frozen=True)
class NodeState:
    """A node's state since a given time, as its agent reported it; None where it did not.

    `missed_ticks`, `lost_sweeps` and `cpu_ratio`, the share of one core, are taken over those sweeps that are surely of
    one process: an agent that restarts, or a second one, makes them no larger.
    """

    node: str
    last_sweep_ns: int
    sweeps: int
    sources_up: tuple[str, ...]
    sources_down: tuple[DownSource, ...]
    missed_ticks: int | None
    lost_sweeps: int | None
    lateness_p99_seconds: float | None
    cpu_ratio: float | None
    resident_bytes: int | None
    clock_error_seconds: float | None
    clock_synchronized: bool | None
    last_sweep_at: str | None = field(default=None, metadata=text_of("last_sweep_ns"))

    def __post_init__(self) -> None:
        fill_texts(self)
