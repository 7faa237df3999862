"""The answer on a run to come; every door says it in these words."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from crosswind.data.schema.prediction import Prediction
from crosswind.models.energy.of_run import EnergyForecast
from crosswind.models.next_run.formulas import MemoryNeed


class Basis(StrEnum):
    """The basis of an answer, the surest first."""

    COHORT = "cohort"  # earlier runs of this workload, configuration and scale on this system
    WORKLOAD = "workload"  # other configurations or scales of the workload on this system
    TRANSFER = "transfer"  # the workload on other systems
    ANALYTIC = "analytic"  # nothing that ran: closed-form times with their uncertain constants


@dataclass(frozen=True)
class Quantile:
    """With probability `level` the outcome is no more than `seconds`."""

    level: float
    seconds: float


def quantiles(prediction: Prediction) -> tuple[Quantile, ...]:
    """The first row of a distribution."""
    return tuple(map(Quantile, prediction.levels, map(float, prediction.values[0])))


@dataclass(frozen=True)
class EvidenceRun:
    """An earlier run that an answer leans on; `distance` 0 is the same cohort."""

    run_id: str
    workload: str
    system: str
    world_size: int
    seconds: float
    distance: float


@dataclass(frozen=True)
class Worth:
    """The record of answers on this basis for runs later than those learned from; None where too few could be asked.

    `skill` is 1 - loss / loss of always-the-cohort-median (of the nearest cohort's median, on other bases), by pinball
    loss of log seconds; `coverage_90` the share that fell into the 90 % interval.
    """

    runs: int = 0
    skill: float | None = None
    coverage_90: float | None = None


@dataclass(frozen=True)
class Answer:
    """Quantiles of one run's outcome, and all that is needed to judge them.

    `distance` is to the nearest cohort that ran, None where none did; above 1, farther than 95 % of the cohorts have
    their own nearest neighbour, the question `is_outside`. `exceedance` is P(outcome > `limit_seconds`). `memory` is of
    the fullest rank, where the configuration tells the network; `energy` is of the outcome, a step's of one step.
    """

    workload: str
    system: str
    world_size: int
    outcome: str
    quantiles: tuple[Quantile, ...]
    basis: Basis
    distance: float | None
    is_outside: bool
    evidence: tuple[EvidenceRun, ...]
    cohort_runs: int
    runs: int
    worth: Worth
    warnings: tuple[str, ...]
    model: str | None = None  # NAME/VERSION of the registry; None was fitted for this question
    memory: MemoryNeed | None = None
    energy: EnergyForecast | None = None
    limit_seconds: float | None = None
    exceedance: float | None = None
    unit: str = "s"

    @property
    def prediction(self) -> Prediction:
        """The quantiles as a distribution of one row."""
        levels = tuple(quantile.level for quantile in self.quantiles)
        return Prediction(levels, np.array([[quantile.seconds for quantile in self.quantiles]]))
