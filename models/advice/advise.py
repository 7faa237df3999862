"""Advice on the next run, with the answer that it is based on."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crosswind.data.schema.answers.advice import ScalingAdvice, WalltimeAdvice
from crosswind.data.schema.answers.energy import EnergyForecast
from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.carbon import CarbonIntensity
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Prediction
from crosswind.data.schema.question import Price, Question, Scales
from crosswind.models.advice.scaling import scaling_curve, within
from crosswind.models.advice.startup import measured_startup
from crosswind.models.advice.walltime import walltime
from crosswind.models.next_run.predictor import RunPredictor
from crosswind.models.next_run.quantiles import distribution


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
    return WalltimeAdvice(walltime(distribution(answer), confidence, startup_seconds=before), before, answer)


def scaling_advice(predictor: RunPredictor, question: Question, scales: Scales, price: Price) -> ScalingAdvice:
    """Return how the same work runs on other numbers of nodes, and how many to ask for. Raises: InvalidInputError."""
    outcome = predictor.time_outcome(question)
    ranks = 1 if outcome is Outcome.JOB else scales.ranks_per_node  # a job's scale is its number of nodes
    asked = [replace(question, world_size=count * ranks, node_count=count) for count in scales.node_counts]
    answers = tuple(predictor.answer(scaled, outcome=outcome) for scaled in asked)
    levels = distribution(answers[0]).levels
    together = Prediction(levels, np.concatenate([distribution(answer).values for answer in answers]))
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
