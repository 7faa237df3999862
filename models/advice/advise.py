"""Advice on the next run, with the answer that it is based on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crosswind.data.schema.carbon import CarbonIntensity
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Prediction
from crosswind.data.schema.question import Question
from crosswind.models.advice.scaling import Price, ScalingCurve, scaling_curve, within
from crosswind.models.advice.startup import measured_startup
from crosswind.models.advice.walltime import Walltime, walltime
from crosswind.models.energy.of_run import EnergyForecast
from crosswind.models.next_run.answer import Answer
from crosswind.models.next_run.cases import Outcome
from crosswind.models.next_run.predictor import RunPredictor

SCALES_MAX = 64


@dataclass(frozen=True)
class WalltimeAdvice:
    """A limit, what of it is spent before the run begins, and the run time that it rests on."""

    limit: Walltime
    startup_seconds: float
    answer: Answer


@dataclass(frozen=True)
class ScalingAdvice:
    """The curve and the answers behind it; `advised` keeps the deadline at the fewest node-hours, or is the knee.

    `change` compares with the nodes that an elastic job has now: more means to expand, fewer to shrink.
    """

    curve: ScalingCurve
    answers: tuple[Answer, ...]
    ranks_per_node: int
    advised: int | None
    change: int | None


def walltime_advice(
    predictor: RunPredictor, question: Question, confidence: float, *, startup_seconds: float | None = None
) -> WalltimeAdvice:
    """The shortest limit that holds with this confidence; the time before the run is measured where it is not given.

    Raises: InvalidInputError.
    """
    answer = predictor.answer(question, outcome=predictor.time_outcome(question))
    is_job = answer.outcome == Outcome.JOB  # which counts from the job's own start
    before = startup_seconds
    if before is None:
        before = 0.0 if is_job else measured_startup(predictor.store, question.workload, question.system)
    return WalltimeAdvice(walltime(answer.prediction, confidence, startup_seconds=before), before, answer)


@dataclass(frozen=True)
class Scales:
    """The numbers of nodes in question, and the job they are for."""

    node_counts: Sequence[int]
    ranks_per_node: int
    deadline_seconds: float | None = None
    now: int | None = None  # nodes that an elastic job has

    def __post_init__(self) -> None:
        if not 1 <= len(self.node_counts) <= SCALES_MAX:
            raise InvalidInputError(f"{len(self.node_counts)} numbers of nodes: expected 1 to {SCALES_MAX}")
        if self.ranks_per_node < 1:
            raise InvalidInputError(f"ranks_per_node {self.ranks_per_node}: expected 1 or more")
        if self.deadline_seconds is not None and not self.deadline_seconds > 0:
            raise InvalidInputError(f"deadline_seconds {self.deadline_seconds}: expected more than 0")
        if self.now is not None and self.now < 1:
            raise InvalidInputError(f"now {self.now}: expected 1 node or more")


def scaling_advice(predictor: RunPredictor, question: Question, scales: Scales, price: Price) -> ScalingAdvice:
    """Return how the same work runs on other numbers of nodes, and how many to ask for. Raises: InvalidInputError."""
    outcome = predictor.time_outcome(question)
    ranks = 1 if outcome is Outcome.JOB else scales.ranks_per_node  # a job's scale is its number of nodes
    asked = [replace(question, world_size=count * ranks, node_count=count) for count in scales.node_counts]
    answers = tuple(predictor.answer(scaled, outcome=outcome) for scaled in asked)
    levels = answers[0].prediction.levels
    together = Prediction(levels, np.concatenate([answer.prediction.values for answer in answers]))
    energies = [answer.energy for answer in answers]
    _check_carbon(price, energies)
    curve = scaling_curve(scales.node_counts, together, _with_carbon(price, predictor.intensity), energies)
    advised = curve.knee if scales.deadline_seconds is None else within(curve, scales.deadline_seconds)
    change = None if advised is None or scales.now is None else advised - scales.now
    return ScalingAdvice(curve, answers, scales.ranks_per_node, advised, change)


def _check_carbon(price: Price, energies: Sequence[EnergyForecast | None]) -> None:
    if price.carbon_grams_per_kilowatt_hour is not None and price.node_watts is None and not any(energies):
        raise InvalidInputError(
            "carbon_grams_per_kilowatt_hour goes with node_watts: no meter and no data sheet tells such runs' energy"
        )


def _with_carbon(price: Price, intensity: CarbonIntensity | None) -> Price:
    """The price with the site's carbon intensity, where it has none of its own."""
    if intensity is None or price.carbon_grams_per_kilowatt_hour is not None:
        return price
    grams = intensity.grams_per_kilowatt_hour * intensity.power_usage_effectiveness
    return replace(price, carbon_grams_per_kilowatt_hour=grams)
