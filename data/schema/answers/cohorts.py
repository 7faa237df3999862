"""Saved cohorts, and how their runs differ from the others. Intervals are of 90 %."""

from dataclasses import dataclass, field
from enum import StrEnum

from crosswind.data.schema.answers.effects import Q_MAX
from crosswind.data.schema.answers.fields import about, fill_texts, text_of
from crosswind.data.schema.saved_cohort import RunConditions


@dataclass(frozen=True)
class ListedCohort:
    """A saved cohort; its members are a list of their own."""

    cohort_id: str
    name: str
    note: str
    created_ns: int
    owner: str | None
    shared: bool
    conditions: RunConditions | None = field(metadata=about("which runs are members; null: runs chosen by their ids"))
    created_at: str | None = field(default=None, metadata=text_of("created_ns"))

    def __post_init__(self) -> None:
        fill_texts(self)


class FeatureKind(StrEnum):
    """The origin of a feature: the outcome of runs, evidence of explanations, or what was run, where, when, how."""

    OUTCOME = "outcome"
    EVIDENCE = "evidence"
    CONFIGURATION = "configuration"
    NODE = "node"
    SOFTWARE = "software"
    FACT = "fact"
    TIME = "time"


@dataclass(frozen=True)
class FeatureDifference:
    """The difference of the cohort from the others in one feature; of a yes or no, medians are shares of yes."""

    kind: FeatureKind
    name: str
    is_share: bool = field(metadata=about("a yes or no, such as node=n1"))
    cohort_runs: int = field(metadata=about("that have the feature"))
    other_runs: int
    cohort_median: float
    other_median: float
    rho: float = field(metadata=about("rank correlation of the feature with being in the cohort, -1 to 1"))
    rho_low: float
    rho_high: float
    p: float = field(metadata=about("by permutation"))
    q: float = field(metadata=about("Benjamini-Hochberg, over all features that were tested"))
    stability: float = field(metadata=about("share of bootstrap replicates in which it is among the first ten"))
    differs: bool = field(default=False, metadata=about("q below 0.05"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "differs", self.q < Q_MAX)


@dataclass(frozen=True)
class CohortComparison:
    """A cohort against the other runs of its workloads and systems: features by how surely they differ."""

    cohort_id: str
    cohort_runs: int = field(metadata=about("the newest 2,000 members that have ended"))
    other_runs: int = field(metadata=about("the newest 5,000 others that have ended"))
    drift: bool = field(metadata=about("whether smooth drift in time was taken out of both"))
    features: tuple[FeatureDifference, ...]
    warnings: tuple[str, ...]
