"""The words of an explanation."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """The verdict that an explanation comes to."""

    SLOW = "slow"
    PERHAPS_SLOW = "perhaps_slow"  # longer than expected by a tenth, as runs of its cohort are at times by themselves
    NORMAL = "normal"
    INSUFFICIENT_EVIDENCE = "insufficient_evidence"


@dataclass(frozen=True)
class Interval:
    """An estimate in seconds with its 90 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Share:
    """The part of the excess that one cause took; `evidence` says in words and numbers what speaks for it."""

    cause: str
    seconds: Interval
    evidence: str


@dataclass(frozen=True)
class Explanation:
    """Why a run took as long as it did, over `steps` steps after warm-up.

    `expected_seconds` + the shares' values + `unexplained.value` = `measured_seconds`. `confidence` is the share of
    replicates in which `cause` was the largest share. With insufficient evidence the numbers are None and
    `next_action` says what to collect.
    """

    run_id: str
    verdict: Verdict
    sentence: str
    next_action: str
    cohort_runs: int
    steps: int
    usual_steps: int | None = None  # of the cohort's runs, where most of them make as many
    measured_seconds: float | None = None
    expected_seconds: float | None = None
    excess: Interval | None = None
    shares: tuple[Share, ...] = ()
    unexplained: Interval | None = None
    cause: str | None = None
    also: tuple[str, ...] = ()  # further causes that stand out, the largest first
    confidence: float | None = None
    culprit_rank: int | None = None  # None also where the cause keeps all ranks, as links do
    culprit_ratio: float | None = None  # share of steps in which the culprit arrived last
    culprit_node: str | None = None  # the culprit's, or the one on whose links most of the cause shows
    missing: tuple[str, ...] = ()  # what nobody recorded, and what cannot be told without it
