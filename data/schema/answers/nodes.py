"""Nodes whose samples arrive."""

from dataclasses import dataclass, field

from crosswind.data.schema.answers.checks import EarlierChecks
from crosswind.data.schema.answers.fields import about, fill_texts, text_of
from crosswind.data.schema.answers.stragglers import RankedPeer
from crosswind.data.schema.run import RunState


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


@dataclass(frozen=True)
class NodeRun:
    """A run that had a node, and the stored verdict on it; None where there is none yet."""

    run_id: str
    workload: str
    system: str
    state: RunState
    started_ns: int | None
    ended_ns: int | None
    verdict: str | None
    cause: str | None
    started_at: str | None = field(default=None, metadata=text_of("started_ns"))
    ended_at: str | None = field(default=None, metadata=text_of("ended_ns"))

    def __post_init__(self) -> None:
        fill_texts(self)


@dataclass(frozen=True)
class NodeJob:
    """A job that had a node; what its scheduler's accounts do not say is None."""

    job_id: str
    system: str | None
    name: str | None
    user: str | None
    state: str | None
    started_ns: int | None
    ended_ns: int | None
    started_at: str | None = field(default=None, metadata=text_of("started_ns"))
    ended_at: str | None = field(default=None, metadata=text_of("ended_ns"))

    def __post_init__(self) -> None:
        fill_texts(self)


@dataclass(frozen=True)
class SampleGap:
    """A time in which a node was not sampled."""

    begin_ns: int
    end_ns: int
    seconds: float
    begin_at: str | None = field(default=None, metadata=text_of("begin_ns"))
    end_at: str | None = field(default=None, metadata=text_of("end_ns"))

    def __post_init__(self) -> None:
        fill_texts(self)


@dataclass(frozen=True)
class NodeReport:
    """A node as it is now."""

    node: str
    names: tuple[str, ...] = field(metadata=about("all by which schedulers, runs and samples call it"))
    systems: tuple[str, ...]
    state: NodeState | None = field(metadata=about("of its agent in the last hour; null without samples"))
    jobs: tuple[NodeJob, ...] = field(metadata=about("that have it now"))
    runs: tuple[NodeRun, ...] = field(metadata=about("that run on it now"))


@dataclass(frozen=True)
class NodeHistory:
    """The time of a node from one moment to another; the newest jobs and runs first."""

    node: str
    from_ns: int
    to_ns: int
    jobs: tuple[NodeJob, ...]
    runs: tuple[NodeRun, ...]
    checks: tuple[EarlierChecks, ...] = field(metadata=about("measurements of it, newest first; at most ten of a kind"))
    ranking: tuple[RankedPeer, ...] = field(metadata=about("its and its devices' place among stragglers, as now"))
    gaps: tuple[SampleGap, ...] = field(metadata=about("longest first"))
    state: NodeState | None = field(metadata=about("of its agent over this time; null without samples"))
    from_at: str | None = field(default=None, metadata=text_of("from_ns"))
    to_at: str | None = field(default=None, metadata=text_of("to_ns"))

    def __post_init__(self) -> None:
        fill_texts(self)
