"""The energy in answers about runs to come."""

from dataclasses import dataclass, replace

from crosswind.data.schema.answers.predictions import Outcome, RunPrediction
from crosswind.data.schema.carbon import CarbonIntensity
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.question import Question
from crosswind.models.energy.metered import MeteredRun, Meters
from crosswind.models.energy.of_run import energy_of
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

    def with_energy(self, answer: RunPrediction, question: Question, metered: Metered) -> RunPrediction:
        """The answer with its energy: of a step, a run or a job, as the answer is."""
        is_job = answer.outcome == Outcome.JOB
        energy = energy_of(question, distribution(answer), metered.runs, is_job=is_job, intensity=self.intensity)
        warnings = (*answer.warnings, metered.problem) if metered.problem else answer.warnings
        return replace(answer, energy=energy, warnings=warnings)
