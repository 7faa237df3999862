"""By what the mean time of a step differs between two runs: parts that sum to the difference."""

from dataclasses import dataclass, field
from enum import StrEnum

from crosswind.data.schema.answers.explanations import Interval
from crosswind.data.schema.answers.fields import about


class PartKind(StrEnum):
    """The kind of a part of a difference."""

    ADDED = "added"  # work of operators that the first run lacks
    GONE = "gone"  # work of operators that the second run lacks
    SLOWER = "slower"  # work of operators of both, surely longer in the second run
    FASTER = "faster"
    ALIKE = "alike"  # the same, by no more than the steps vary
    WAIT = "wait"  # in collectives, for the last rank to arrive; none of these is hidden by computation
    TRANSFER = "transfer"
    MEMORY = "memory"  # copies, and on a host without a device input and output
    HOST = "host_bound"  # no work was launched that could have run
    IDLE = "idle"  # although work was launched


@dataclass(frozen=True)
class DifferenceSide:
    """One of the two runs."""

    ranks: tuple[int, ...]
    steps: int = field(metadata=about("of each rank, that are compared"))
    step_seconds: float = field(metadata=about("mean over steps and ranks"))
    over: str = field(metadata=about("whose time is split: device; host, without one; probe, of a run without traces"))


@dataclass(frozen=True)
class DifferenceKind:
    """All parts of one kind."""

    kind: PartKind
    seconds: Interval = field(metadata=about("second run - first run, mean of a step"))
    count: int = field(metadata=about("parts"))


@dataclass(frozen=True)
class DifferencePart:
    """One operator's part of one kind."""

    kind: PartKind
    operator: tuple[str, ...] = field(
        metadata=about("ranges of the host around it, the outermost first; its work's own name without any")
    )
    seconds: Interval = field(metadata=about("second run - first run, mean of a step over all ranks"))
    first_seconds: float
    second_seconds: float
    rank: int | None = field(metadata=about("on which most of it is; null where several share it"))
    rank_seconds: float | None = field(metadata=about("the difference on that rank alone"))
    first_names: tuple[str, ...] = field(metadata=about("of its kernels in the first run, the longest first"))
    second_names: tuple[str, ...]


@dataclass(frozen=True)
class RunsDifference:
    """The difference of two runs' mean times of a step; the parts and what is unexplained sum to it within 1 ns.

    Bounds of intervals are null where both runs have one step.
    """

    sentence: str
    first: DifferenceSide
    second: DifferenceSide
    seconds: Interval = field(metadata=about("second run - first run, mean of a step"))
    kinds: tuple[DifferenceKind, ...]
    parts: tuple[DifferencePart, ...] = field(metadata=about("the largest first"))
    unexplained: Interval
    notes: tuple[str, ...]
