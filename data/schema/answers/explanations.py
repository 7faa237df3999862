"""Why a run took as long as it did, why longer than another, and which ranks waited for which."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from crosswind.data.schema.answers.fields import about


class Verdict(StrEnum):
    """The verdict that an explanation comes to."""

    SLOW = "slow"
    PERHAPS_SLOW = "perhaps_slow"  # longer than expected by a tenth, as runs of its cohort are at times by themselves
    NORMAL = "normal"
    INSUFFICIENT_EVIDENCE = "insufficient_evidence"


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
    cause: str | None = None
    also: tuple[str, ...] = field(default=(), metadata=about("further causes that stand out, the largest first"))
    confidence: float | None = field(default=None, metadata=about("share of replicates with this main cause"))
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
