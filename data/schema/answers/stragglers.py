"""Stragglers among peers, over many runs and in one run, and lasting changes of a workload's time."""

from dataclasses import dataclass, field
from enum import StrEnum

from crosswind.data.schema.answers.fields import about, fill_texts, text_of

SLOWER = 0.05  # a peer is slow that takes longer by more than this share of its peers' time
SURE = 0.95  # and named with at least this probability
SAME_LENGTHS = 0.9  # correlation of forward and backward times from which on sequences are of unequal lengths


class PeerKind(StrEnum):
    """The kind of what is ranked."""

    NODE = "node"
    DEVICE = "device"
    PLACE = "rank place"
    SWITCH = "switch"


class ComparisonBasis(StrEnum):
    """The basis of a comparison: ranks within one run, or whole runs within their cohort."""

    RANKS = "ranks"
    RUN_TIMES = "run times"


@dataclass(frozen=True)
class RankedPeer:
    """One thing's time over its peers' median, shrunken by how little is known of it, with its 90 % interval."""

    kind: PeerKind
    name: str
    system: str
    ratio: float
    low_ratio: float
    high_ratio: float
    chance_slower: float = field(metadata=about(f"that it is slower by more than {SLOWER:.0%}"))
    named: bool = field(metadata=about(f"that chance is at least {SURE:.0%}, and runs suffice"))
    runs: int = field(metadata=about("of its present level"))
    since_ns: int | None = field(metadata=about("when its present level began"))
    since: str = field(metadata=about("what the level began with: first run, boot, change"))
    was_ratio: float | None = field(metadata=about("the level before"))
    basis: ComparisonBasis
    since_at: str | None = field(default=None, metadata=text_of("since_ns"))

    def __post_init__(self) -> None:
        fill_texts(self)


@dataclass(frozen=True)
class PeerRanking:
    """All peers compared, the surest stragglers first; `ranked` may be the first part of them."""

    runs: int
    compared_runs: int = field(metadata=about("with ranks on several nodes that recorded their waiting"))
    timed_runs: int = field(metadata=about("that could only be compared by their time"))
    noise_ratio: float | None = field(metadata=about("by how much a node differs from run to run"))
    compared: int = field(metadata=about("peers compared"))
    ranked: tuple[RankedPeer, ...]
    warnings: tuple[str, ...]

    @property
    def named(self) -> tuple[RankedPeer, ...]:
        """The stragglers."""
        return tuple(peer for peer in self.ranked if peer.named)


@dataclass(frozen=True)
class Slowdown:
    """Measured / replayed with equal ranks: of the whole, and with one rank or pipeline stage alone as measured.

    `without` is the speed-up that mending each rank alone would bring; `of_group` is as `alone`, by pipeline stage.
    """

    whole: float
    alone: tuple[float, ...]
    without: tuple[float, ...]
    of_group: tuple[float, ...]

    @property
    def rank(self) -> int:
        """The rank that slows the run most by itself."""
        return self.alone.index(max(self.alone))


@dataclass(frozen=True)
class Episode:
    """A rank that the others waited for, or the fabric (`rank` None), from its first step on; open ends are None."""

    rank: int | None
    phase: str
    first_step: int
    last_step: int | None
    began_ns: int
    noticed_after_seconds: float
    ended_ns: int | None
    lag_seconds: float = field(metadata=about("mean of a step"))
    lag_ratio: float = field(metadata=about("over the usual step"))
    began_at: str | None = field(default=None, metadata=text_of("began_ns"))

    def __post_init__(self) -> None:
        fill_texts(self)


@dataclass(frozen=True)
class RunStragglers:
    """A run's stragglers in the order in which they began, as its steps showed them; `steps` were judged.

    `slowdown` is what equal ranks would have saved in the newest whole steps; None without any, or without waiting.
    """

    run_id: str
    state: str
    ranks: int
    steps: int
    newest_step: int | None
    newest_ns: int | None
    episodes: tuple[Episode, ...]
    slowdown: Slowdown | None
    silent_ranks: tuple[int, ...]
    warnings: tuple[str, ...]

    @property
    def now(self) -> tuple[Episode, ...]:
        """The episodes that go on."""
        return tuple(episode for episode in self.episodes if episode.last_step is None)


class ReplayBasis(StrEnum):
    """The rows that a replay is of: operations of the ranks one by one, or steps with their waits."""

    OPERATIONS = "operations"
    STEPS = "steps"


@dataclass(frozen=True)
class ReplayedPart:
    """One rank or pipeline stage: the run's slowdown if it alone is as measured, and the speed-up from mending it."""

    number: int
    alone_ratio: float = field(metadata=about("over the time with equal ranks"))
    mended_ratio: float | None = field(metadata=about("measured over the time with this part as its peers"))


@dataclass(frozen=True)
class SequenceImbalance:
    """The likelihood that micro-batches are of unequal lengths: then their forward and backward times go together."""

    correlation: float = field(metadata=about("of both times of a micro-batch, the median of the stages"))
    spread_ratio: float = field(metadata=about("standard deviation of computation over its mean, of a stage's"))
    is_imbalanced: bool = field(metadata=about(f"that the correlation is {SAME_LENGTHS} at least"))
    micro_batches: int


@dataclass(frozen=True)
class RunReplay:
    """A run replayed with equal ranks: S, and the ranks and pipeline stages that slow it most, the worst first.

    S = measured / replayed. `steps` were replayed, the newest ones. Without stages there is one pipeline stage.
    """

    run_id: str
    basis: ReplayBasis
    slowdown_ratio: float = field(metadata=about("S of the whole run"))
    step_seconds: float = field(metadata=about("mean of the replayed steps, as measured"))
    steps: int
    ranks: int
    by_rank: tuple[ReplayedPart, ...]
    by_stage: tuple[ReplayedPart, ...]
    sequence: SequenceImbalance | None = field(metadata=about("null without operations of micro-batches"))
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class ChangedFact:
    """A fact of the runs that changed at the same time as their time."""

    fact: str
    before: str
    since: str
    exactness: float = field(metadata=about("agreement x chance that changes at random would be further off"))
    agreement: float = field(metadata=about("share of runs on the side where most others of their value are"))
    runs_off: int = field(metadata=about("runs between the change of level and the nearest change of the fact"))
    switches: int = field(metadata=about("how often the fact changed from run to run"))


@dataclass(frozen=True)
class Regression:
    """From then on runs took `ratio` times as long as before, for good; without suspects, nothing changed with it."""

    system: str
    workload: str
    since_ns: int
    ratio: float
    runs_before: int
    runs_since: int
    suspects: tuple[ChangedFact, ...]
    since_at: str | None = field(default=None, metadata=text_of("since_ns"))

    def __post_init__(self) -> None:
        fill_texts(self)


@dataclass(frozen=True)
class Regressions:
    """Lasting changes, the newest first; `too_few` are the workloads, `system/workload`, with too few runs."""

    runs: int
    workloads: int = field(metadata=about("of one system each"))
    changes: tuple[Regression, ...]
    too_few: tuple[str, ...]
    warnings: tuple[str, ...]
