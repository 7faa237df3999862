"""The energy in answers about runs to come."""

from dataclasses import dataclass, replace

from crosswind.data.schema.answers.energy import EnergyForecast, PowerBasis
from crosswind.data.schema.answers.predictions import Outcome, RunPrediction
from crosswind.data.schema.carbon import CarbonIntensity, Energy, Origin
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.question import Question
from crosswind.models.energy.metered import MeteredRun, Meters
from crosswind.models.energy.of_run import energy_of
from crosswind.models.next_run.device_transfers import TransferredEnergy
from crosswind.models.next_run.quantiles import distribution


@dataclass(frozen=True)
class Metered:
    """Metered runs that energy is predicted from, and the reason for none where samples are damaged."""

    runs: tuple[MeteredRun, ...]
    problem: str = ""


@dataclass(frozen=True)
class EnergyEstimator:
    """Predicts energy from meters' readings of earlier runs; carbon where an intensity is set."""

    meters: Meters
    intensity: CarbonIntensity | None = None

    def metered(self, workload: str, system: str) -> Metered:
        """Return the metered runs that energy is predicted from; none, with the problem, where samples are damaged."""
        try:
            return Metered(self.meters.runs(workload, system))
        except MalformedError as error:
            return Metered((), f"energy is predicted without meters: {error!s:.300}")

    def with_energy(
        self,
        answer: RunPrediction,
        question: Question,
        metered: Metered,
        transferred: TransferredEnergy | None = None,
    ) -> RunPrediction:
        """The answer with its energy: of a step, a run or a job, as the answer is.

        What was transferred from other devices comes first, for it knows the power limit.
        """
        is_job = answer.outcome == Outcome.JOB
        if transferred is not None and question.node_count is not None:
            energy: EnergyForecast | None = _of_nodes(transferred, question.node_count, self.intensity)
        else:
            energy = energy_of(question, distribution(answer), metered.runs, is_job=is_job, intensity=self.intensity)
        warnings = (*answer.warnings, metered.problem) if metered.problem else answer.warnings
        return replace(answer, energy=energy, warnings=warnings)


def _of_nodes(one: TransferredEnergy, node_count: int, intensity: CarbonIntensity | None) -> EnergyForecast:
    """Return the energy of so many nodes that draw alike."""
    [joules], [low], [high] = (node_count * one.joules.at(level) for level in (0.5, 0.05, 0.95))
    return EnergyForecast(
        *(float(joules), float(low), float(high)),
        node_watts=one.watts,
        node_count=node_count,
        origin=Origin.MEASURED,
        scope=one.scope,
        basis=PowerBasis.WORKLOAD,
        metered_runs=one.metered_runs,
        carbon_grams=None if intensity is None else intensity.of(Energy(float(joules), Origin.MEASURED)).grams,
    )
