"""Counters and neighbours that go with slow runs. Intervals are of 90 %."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from crosswind.data.schema.answers.fields import about

Q_MAX = 0.05  # a smaller q is taken for more than luck
P_RISING = 0.05


@dataclass(frozen=True)
class CounterColumn:
    """A counter of a metric set, of the devices of this name, `*` standing for numbers.

    `per` is `second` or `byte` for a counter, empty for a gauge's mean. `name` is all of it as text:
    `network.receive_drops_total[eth*] per second`.
    """

    metric_set: str
    column: str
    devices: str
    per: str
    unit: str
    description: str
    name: str = ""

    def __post_init__(self) -> None:
        devices = f"[{self.devices}]" if self.devices else ""
        name = f"{self.metric_set}.{self.column}{devices}{f' per {self.per}' if self.per else ''}"
        object.__setattr__(self, "name", name)


@dataclass(frozen=True)
class CounterEffect:
    """The association of a counter with slow runs."""

    shown: CounterColumn
    runs: int
    rho: float = field(metadata=about("partial rank correlation with the excess, without trend and cohort"))
    rho_low: float
    rho_high: float
    deviation_ratio: float = field(metadata=about("times as long per standard deviation of its rank"))
    deviation_low_ratio: float
    deviation_high_ratio: float
    distance_correlation: float
    importance: float | None = field(metadata=about("share of the variance that trees lose without it, if computed"))
    p: float = field(metadata=about("by permutation within blocks of time"))
    q: float = field(metadata=about("Benjamini-Hochberg, over all counters that were tested"))
    stability: float = field(metadata=about("share of bootstrap replicates in which it is among the first ten"))
    follows_duration: bool = field(
        default=False, metadata=about("it counts the run's own work or the time, so that a slow run explains it")
    )
    matters: bool = field(default=False, metadata=about("q below 0.05"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "matters", self.q < Q_MAX)


@dataclass(frozen=True)
class CounterRanking:
    """Counters of a system's runs, surest first; `warnings` say what is unknown and what to record."""

    system: str
    workload: str | None
    runs: int
    compared_runs: int
    sampled: int
    constant: int = field(metadata=about("of the sampled, those that never varied or have values of too few runs"))
    counters: tuple[CounterEffect, ...]
    warnings: tuple[str, ...]
    from_ns: int | None = None
    to_ns: int | None = None

    @property
    def mattering(self) -> tuple[CounterEffect, ...]:
        """The counters that go with the excess beyond luck."""
        return tuple(counter for counter in self.counters if counter.matters)


class NeighbourKind(StrEnum):
    """The kind of a neighbour: all of a user's work, all runs of a workload, or one job."""

    USER = "user"
    WORKLOAD = "workload"
    JOB = "job"


class NeighbourScope(StrEnum):
    """The place of a neighbour: on a node of the run, or on another node of its switch or rack."""

    NODE = "node"
    GROUP = "group"


@dataclass(frozen=True)
class Neighbour:
    """A user (by pseudonym), a workload or a job (by id) that ran next to others."""

    kind: NeighbourKind
    scope: NeighbourScope
    name: str


@dataclass(frozen=True)
class Dose:
    """Mean time, relative to runs without the neighbour, of the exposed runs with least, middle and most of it."""

    low_ratio: float
    middle_ratio: float
    high_ratio: float
    p: float = field(metadata=about("one-sided: that more of it goes with more delay"))
    is_rising: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_rising", self.p < P_RISING)


@dataclass(frozen=True)
class NeighbourEffect:
    """The slowdown that goes with a neighbour's presence."""

    candidate: Neighbour
    exposed_runs: int
    mean_share: float = field(metadata=about("of an exposed run's time and nodes"))
    slowdown_ratio: float = field(metadata=about("time next to it over time without it, drift taken out"))
    slowdown_low_ratio: float
    slowdown_high_ratio: float
    rho: float = field(metadata=about("partial rank correlation of its share with the excess"))
    rho_low: float
    rho_high: float
    p: float = field(metadata=about("by permutation within blocks of time"))
    q: float = field(metadata=about("Benjamini-Hochberg, over all candidates"))
    stability: float = field(metadata=about("share of bootstrap replicates in which it is among the first ten"))
    dose: Dose | None = field(default=None, metadata=about("with q below 0.05 and nine exposed runs or more"))
    rides_with: Neighbour | None = field(default=None, metadata=about("a surer candidate that explains this one"))
    is_blamed: bool = field(default=False, metadata=about("slower, q below 0.05, and explained by no other candidate"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_blamed", self.q < Q_MAX and self.rho > 0 and self.rides_with is None)


@dataclass(frozen=True)
class Interference:
    """Neighbours of a system's runs, surest first; `warnings` say what is unknown and what to record."""

    system: str
    workload: str | None
    runs: int
    compared_runs: int = field(metadata=about("that have a cohort to compare with, and nodes"))
    accompanied_runs: int = field(metadata=about("of them, those with any neighbour"))
    seen: Mapping[NeighbourKind, int] = field(metadata=about("neighbours of any run"))
    candidates: int = field(metadata=about("neighbours of enough runs to be tested"))
    inseparable: int = field(metadata=about("of them, those that came and went with the drift or one cohort"))
    suspects: tuple[NeighbourEffect, ...]
    warnings: tuple[str, ...]
    from_ns: int | None = None
    to_ns: int | None = None

    @property
    def blamed(self) -> tuple[NeighbourEffect, ...]:
        """The neighbours that slow runs down."""
        return tuple(suspect for suspect in self.suspects if suspect.is_blamed)
