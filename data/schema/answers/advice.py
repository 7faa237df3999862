"""Advice on what to request of the scheduler, and how to share a batch among ranks."""

from dataclasses import dataclass, field

from crosswind.data.schema.answers.fields import about
from crosswind.data.schema.answers.predictions import RunPrediction
from crosswind.data.schema.carbon import Origin


@dataclass(frozen=True)
class Walltime:
    """A limit in whole minutes, and the directive that requests it."""

    seconds: int
    confidence: float
    quantile_seconds: float = field(metadata=about("what the run takes at most with this confidence"))
    directive: str = field(metadata=about("a line of a job script"))


@dataclass(frozen=True)
class WalltimeAdvice:
    """The shortest limit that is enough, what of it passes before the run begins, and the predicted run time."""

    limit: Walltime
    startup_seconds: float
    answer: RunPrediction


@dataclass(frozen=True)
class ScalePoint:
    """One number of nodes: the median run time with its 90 % interval, and what it takes.

    `speedup` and `efficiency` compare with the smallest number of nodes; `joules`, `cost` and `carbon_grams` are None
    where neither the price nor a meter or a data sheet gives them.
    """

    node_count: int
    seconds: float
    low_seconds: float
    high_seconds: float
    speedup: float
    efficiency: float
    node_hours: float
    joules: float | None
    cost: float | None
    carbon_grams: float | None
    energy_origin: Origin | None = field(
        default=None, metadata=about("null where the request gave the watts of a node")
    )


@dataclass(frozen=True)
class ScalingCurve:
    """Points by rising number of nodes, and three of these numbers.

    `knee` has the best ratio of efficiency to time (Eager, Zahorjan and Lazowska 1989, "Speedup versus efficiency in
    parallel systems"), `cheapest` the fewest node-hours, `fastest` the shortest median; of two as good the smaller.
    """

    points: tuple[ScalePoint, ...]
    knee: int
    cheapest: int
    fastest: int


@dataclass(frozen=True)
class ScalingAdvice:
    """The curve, the predictions behind its points, and how many nodes to request: None where none keeps the deadline.

    `advised` keeps the deadline at the fewest node-hours, or is the knee without one.
    """

    curve: ScalingCurve
    answers: tuple[RunPrediction, ...]
    ranks_per_node: int
    advised: int | None
    change: int | None = field(metadata=about("nodes to expand by, below zero to shrink by"))


@dataclass(frozen=True)
class RankShare:
    """A rank's samples a step: now, with equal shares, and so that all finish together; seconds are medians."""

    rank: int
    node: str | None
    compute_seconds: float
    samples_now: float
    equal_samples: int
    samples: int
    shared_compute_seconds: float


@dataclass(frozen=True)
class BatchShares:
    """Samples for each rank, and the share of the step's time that they save against equal ones, with 90 % interval."""

    run_id: str
    batch: int
    now_batch: float
    present: str = field(metadata=about("where the present batch is taken from"))
    steps: int = field(metadata=about("that were measured"))
    ranks: tuple[RankShare, ...]
    equal_step_seconds: float
    shared_step_seconds: float
    gain_ratio: float = field(metadata=about("on steps other than those that the shares were taken from"))
    gain_low_ratio: float
    gain_high_ratio: float
    warnings: tuple[str, ...]
