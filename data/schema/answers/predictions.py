"""The outcome of a run to come, as a distribution."""

from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite

from crosswind.data.schema.answers.energy import EnergyForecast
from crosswind.data.schema.answers.fields import about
from crosswind.data.schema.errors import InvalidInputError


class Outcome(StrEnum):
    """The outcome predicted: a run's median step time, its run time, or that of a job without a recorded run."""

    STEP = "step_p50_seconds"
    RUN = "run_seconds"
    JOB = "job_seconds"


class PredictionBasis(StrEnum):
    """The basis of a prediction, the surest first."""

    COHORT = "cohort"  # earlier runs of this workload, configuration and scale on this system
    WORKLOAD = "workload"  # other configurations or scales of the workload on this system
    TRANSFER = "transfer"  # the workload on other systems
    ANALYTIC = "analytic"  # nothing that ran: closed-form times with their uncertain constants


class QuestionKind(StrEnum):
    """The kind of a question by what of it never ran: predictions of each kind have their own accuracy."""

    REPEAT = "repeat"  # this workload, configuration and scale ran on this system
    CONFIGURATION = "configuration"  # another configuration, or another of the scales that ran
    SCALE = "scale"  # more ranks than the workload ever had
    SYSTEM = "system"  # a system or an accelerator on which the workload never ran
    WORKLOAD = "workload"  # a workload that never ran


@dataclass(frozen=True)
class Quantile:
    """With probability `level` the outcome is no more than `seconds`."""

    level: float
    seconds: float


@dataclass(frozen=True)
class EvidenceRun:
    """An earlier run that a prediction rests on; `distance` 0 is the same cohort."""

    run_id: str
    workload: str
    system: str
    world_size: int
    seconds: float
    distance: float


@dataclass(frozen=True)
class Accuracy:
    """The score of answers to questions of this kind, on runs that they were not learned from; None with too few.

    These are runs later than those learned from, in which skill is measured, or else cohorts that were held out. Loss
    is the pinball loss of log seconds; but for repeats the baseline is the median of the workload's cohorts.
    """

    runs: int = 0
    skill: float | None = field(default=None, metadata=about("1 - loss / loss of always-the-cohort-median"))
    coverage_90: float | None = field(default=None, metadata=about("share that fell into the 90 % interval"))
    kind: QuestionKind | None = field(default=None, metadata=about("of the questions, the same as of the one asked"))
    median_error: float | None = field(default=None, metadata=about("median of |predicted / measured - 1|"))
    is_held_out: bool = field(default=False, metadata=about("of cohorts held out; false: of later runs"))


@dataclass(frozen=True)
class MemoryNeed:
    """Bytes on the fullest rank by formulas, and whether they fit the accelerator; None where none is named."""

    bytes: float
    device: str | None
    device_bytes: float | None
    fits: bool | None


@dataclass(frozen=True)
class RunPrediction:
    """The distribution of one run's outcome, its basis, and the accuracy of such predictions.

    `outcome` is step_p50_seconds where earlier runs recorded steps, run_seconds where they did not, and job_seconds
    where only the scheduler's accounts exist: `world_size` is then the number of nodes. `memory` is of the fullest
    rank, where the configuration describes the network; `energy` is of the outcome, a step's of one step.
    """

    workload: str
    system: str
    world_size: int
    outcome: str
    quantiles: tuple[Quantile, ...]
    basis: PredictionBasis
    distance: float | None = field(metadata=about("to the nearest cohort; above 1 is farther than usual"))
    is_outside: bool = field(metadata=about("whether it is farther than 95 % of cohorts from their nearest"))
    evidence: tuple[EvidenceRun, ...]
    cohort_runs: int = field(metadata=about("earlier runs of this configuration and scale on this system"))
    runs: int = field(metadata=about("earlier runs of this workload, anywhere"))
    worth: Accuracy
    warnings: tuple[str, ...]
    model: str | None = field(default=None, metadata=about("NAME/VERSION; null was fitted for this question"))
    memory: MemoryNeed | None = field(default=None, metadata=about("where the configuration describes the network"))
    energy: EnergyForecast | None = field(
        default=None, metadata=about("null where neither a meter nor a data sheet gives power")
    )
    limit_seconds: float | None = None
    exceedance: float | None = field(default=None, metadata=about("probability of taking longer than limit_seconds"))
    unit: str = "s"

    def __post_init__(self) -> None:
        if not all(isfinite(quantile.seconds) for quantile in self.quantiles):
            raise InvalidInputError(
                f"world_size {self.world_size}: no finite {self.outcome} follows from what is recorded of "
                f"{self.workload!r:.80}, expected a run that is closer to those"
            )
