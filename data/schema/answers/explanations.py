"""Why a run took as long as it did, why longer than another, and which ranks waited for which."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from crosswind.data.schema.answers.fields import about


class Verdict(StrEnum):
    """The verdict that an explanation comes to."""

    SLOW = "slow"  # slower than expected: the interval of the excess lies above zero
    PERHAPS_SLOW = "perhaps_slow"  # longer than expected, as runs of its cohort are at times by themselves
    ONE_RANK_DELAYS = "one_rank_delays"  # not slower than expected, and yet one rank keeps the others waiting
    NORMAL = "normal"
    INSUFFICIENT_EVIDENCE = "insufficient_evidence"


class Expectation(StrEnum):
    """The origin of the expected time."""

    COHORT = "cohort"  # the other runs of its cohort
    OTHER_RANKS = "other_ranks"  # the run's other ranks, which do the same work
    OWN_STEPS = "own_steps"  # the run's own earlier steps
    FORMULAS = "formulas"  # of the step time, from the configuration alone


UNKNOWN = "unknown"  # in the place of a cause: time that nothing measured says anything about


@dataclass(frozen=True)
class Interval:
    """An estimate in seconds with its 90 % interval; null on the wire where it is not a number."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class CauseShare:
    """The part of the excess that one cause took, and the evidence for it in words and numbers."""

    cause: str
    seconds: Interval
    evidence: str


@dataclass(frozen=True)
class RankLag:
    """A rank that the others of its run wait for; ranks of one run are each other's peers."""

    rank: int
    phase: str = field(metadata=about("in which it spends most of that time"))
    seconds: Interval = field(metadata=about("mean of a step, more than the median of the other ranks"))
    late_ratio: float = field(metadata=about("share of steps in which it is late by at least half as much"))
    since_step: int | None = field(metadata=about("null: from the first step that is compared"))
    cause: str = field(metadata=about("with the most evidence; `unknown` where no counter explains it"))
    is_usual: bool = field(metadata=about("whether the other runs of the cohort show the same"))


@dataclass(frozen=True)
class StepChange:
    """The step from which on a run's own steps took longer than all before; seconds are medians of a step."""

    first_step: int
    last_step: int | None = field(metadata=about("null: up to the end"))
    before_seconds: float
    since_seconds: float


@dataclass(frozen=True)
class Explanation:
    """Why a run took as long as it did; expected + shares + unexplained = measured, in seconds over `steps`.

    With insufficient evidence the numbers are None and `next_action` says what to collect.
    """

    run_id: str
    verdict: Verdict
    sentence: str
    next_action: str
    cohort_runs: int
    steps: int = field(metadata=about("after warm-up"))
    usual_steps: int | None = field(
        default=None, metadata=about("of the cohort's runs, where most of them make as many")
    )
    measured_seconds: float | None = None
    expected_seconds: float | None = None
    excess: Interval | None = None
    shares: tuple[CauseShare, ...] = ()
    unexplained: Interval | None = None
    cause: str | None = field(
        default=None, metadata=about("`unknown` where most of the excess is in a place but nothing says why")
    )
    also: tuple[str, ...] = field(default=(), metadata=about("further causes that stand out, the largest first"))
    confidence: float | None = field(
        default=None,
        metadata=about("share of redrawn evidence with this main cause, never 1; null where another has more"),
    )
    culprit_rank: int | None = field(
        default=None, metadata=about("null also where the cause slows all ranks, as links do")
    )
    culprit_ratio: float | None = field(
        default=None, metadata=about("share of steps in which the culprit arrived last")
    )
    culprit_node: str | None = field(
        default=None, metadata=about("the culprit's, or the one on whose links most of the cause shows")
    )
    missing: tuple[str, ...] = field(
        default=(), metadata=about("what nobody recorded, and what cannot be explained without it")
    )
    failure: str | None = field(default=None, metadata=about("of a run that failed: which process first, and of what"))
    expected_from: Expectation | None = field(default=None, metadata=about("null where nothing was expected"))
    phase: str | None = field(default=None, metadata=about("of an `unknown` cause"))
    lag: RankLag | None = field(default=None, metadata=about("null where no rank keeps the others waiting"))
    change: StepChange | None = field(default=None, metadata=about("null where its own steps became no slower"))
    formula_seconds: Interval | None = field(
        default=None, metadata=about("of a step, by formulas; null where the configuration describes no network")
    )


@dataclass(frozen=True)
class Comparison:
    """By what the slower of two runs took longer, in seconds over its steps after warm-up.

    `slower_seconds` = `faster_seconds` + `more_steps_seconds` + shares + unexplained; `difference` is the sum of the
    last two. `differing` maps what the runs do not have in common to both values, the slower's first.
    """

    slower: str
    faster: str
    sentence: str
    slower_steps: int
    faster_steps: int
    slower_seconds: float
    faster_seconds: float
    more_steps_seconds: float
    difference: Interval
    shares: tuple[CauseShare, ...]
    also: tuple[str, ...] = field(metadata=about("causes beside the first that are surely there"))
    unexplained: Interval
    differing: Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class Wait:
    """The seconds, and the steps, in which one rank waited for another."""

    culprit: int
    victim: int
    seconds: float
    steps: int


@dataclass(frozen=True)
class PipelineStage:
    """A pipeline's stage: the mean seconds a step of its ranks, by themselves and waiting."""

    name: str
    ranks: tuple[int, ...]
    own_seconds: float
    waited_seconds: float


@dataclass(frozen=True)
class Waits:
    """The waits of a run over the steps after warm-up that all of its ranks recorded, the largest edges first."""

    run_id: str
    steps: int
    lost_seconds: float = field(metadata=about("sum over all victims and steps"))
    edges: tuple[Wait, ...]
    stages: tuple[PipelineStage, ...] = field(metadata=about("by name; none without a pipeline"))
    balance_ratio: float | None = field(metadata=about("mean / largest of the stages' own seconds"))
