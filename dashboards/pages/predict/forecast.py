"""The forecast of one run: its time, the limit to request, its scaling, energy and cost."""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from crosswind.client.local import Local
from crosswind.dashboards.pages.predict.form import Form, usual_run
from crosswind.data.schema.answers.advice import ScalingCurve, Walltime
from crosswind.data.schema.answers.energy import EnergyForecast
from crosswind.data.schema.answers.predictions import Outcome, Quantile, RunPrediction
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Prediction
from crosswind.data.schema.question import RANKS_MAX, Price, Question, Scales
from crosswind.data.store.store import Store
from crosswind.models.advice.scaling import scaling_curve
from crosswind.models.advice.startup import measured_startup
from crosswind.models.advice.walltime import walltime
from crosswind.models.next_run.quantiles import distribution, quantiles
from crosswind.models.surrogate.exceedance import exceedance

DOUBLINGS = range(-3, 4)  # of the number of nodes, on the scaling curve
OF_STEPS = "the time is that of the steps alone: warm-up, checkpoints and the start come on top"


@dataclass(frozen=True)
class Forecast:
    """The time of a whole run as quantiles, and what follows; `outside` are numbers of nodes far from all that ran."""

    question: Question
    answer: RunPrediction
    quantiles: tuple[Quantile, ...]
    limit: Walltime
    startup_seconds: float
    exceedance: float | None
    energy: EnergyForecast | None
    curve: ScalingCurve | None
    outside: tuple[int, ...]
    nodes: int
    cost: float | None
    warnings: tuple[str, ...]

    def at(self, level: float) -> float:
        """Return the time that is not exceeded with this probability."""
        return next(quantile.seconds for quantile in self.quantiles if quantile.level == level)


@dataclass(frozen=True)
class Forecasting:
    """Computes the forecast of a form for a client; the same with the same form and the same promoted `models`."""

    form: Form
    models: tuple[str, ...]
    client: Local = field(compare=False, repr=False)

    def __call__(self, _: Store) -> Forecast:
        """Return the forecast. Raises: InvalidInputError, NotFoundError."""
        return forecast(self.client, self.form)


def forecast(client: Local, form: Form) -> Forecast:
    """Return the forecast of a form. Raises: InvalidInputError, NotFoundError."""
    usual = usual_run(client, form)
    question = client.question_of(form.question(usual))
    steps, price = form.step_count, Price(per_node_hour=form.per_node_hour)
    if steps is None:
        advice = client.advise_walltime(question, form.level)
        answer, total, before = advice.answer, distribution(advice.answer), advice.startup_seconds
    else:
        answer = client.predict(question, Outcome.STEP)
        total = _times(distribution(answer), steps)
        before = measured_startup(client.store, question.workload, question.system)
    per_node = 1 if answer.outcome == Outcome.JOB else _ranks_per_node(client, form, question)
    nodes = math.ceil(question.world_size / per_node)
    curve, outside, refusal = _scaling(client, question, per_node, price=price, steps=steps)
    limit = form.limit_seconds
    middle = float(total.at(0.5)[0])
    return Forecast(
        question=question,
        answer=answer,
        quantiles=quantiles(total),
        limit=walltime(total, form.level, startup_seconds=before),
        startup_seconds=before,
        exceedance=None if limit is None else float(exceedance(total, max(limit - before, 1e-9))[0]),
        energy=_energy_times(answer.energy, steps or 1),
        curve=curve,
        outside=outside,
        nodes=nodes,
        cost=None if price.per_node_hour is None else price.per_node_hour * nodes * middle / 3600,
        warnings=(*answer.warnings, *refusal, *((OF_STEPS,) if steps else ())),
    )


def _ranks_per_node(client: Local, form: Form, question: Question) -> int:
    """Return the ranks of a node: as asked, else as in the newest run of the workload there, else one."""
    if question.node_count:
        return math.ceil(question.world_size / question.node_count)
    run = usual_run(client, replace(form, workload=question.workload, system=question.system))
    return math.ceil(run.world_size / len(run.nodes)) if run and run.world_size and run.nodes else 1


def _scaling(
    client: Local, question: Question, per_node: int, *, price: Price, steps: int | None
) -> tuple[ScalingCurve | None, tuple[int, ...], tuple[str, ...]]:
    """Return the curve, its numbers of nodes that are far from all that ran, and why there is none."""
    middle = math.ceil(question.world_size / per_node)
    counts = sorted({math.ceil(middle * 2.0**power) for power in DOUBLINGS})
    counts = [count for count in counts if count * per_node <= RANKS_MAX]
    try:
        if steps is None:
            advice = client.advise_scaling(question, Scales(counts, per_node), price)
            curve, far = advice.curve, [answer.is_outside for answer in advice.answers]
        else:
            asked = [replace(question, world_size=count * per_node, node_count=count) for count in counts]
            batch = client.predict_many(asked, Outcome.STEP)
            table = Prediction(tuple(batch.levels), np.array(batch.seconds, dtype=np.float64))
            curve, far = scaling_curve(counts, _times(table, steps), price), list(batch.is_outside)
    except InvalidInputError as error:
        return None, (), (f"no scaling curve: {error}",)
    return curve, tuple(count for count, is_far in zip(counts, far, strict=True) if is_far), ()


def _times(prediction: Prediction, steps: int) -> Prediction:
    return Prediction(prediction.levels, prediction.values * steps)


def _energy_times(energy: EnergyForecast | None, steps: int) -> EnergyForecast | None:
    if energy is None:
        return None
    carbon = None if energy.carbon_grams is None else energy.carbon_grams * steps
    joules = {name: getattr(energy, name) * steps for name in ("joules", "low_joules", "high_joules")}
    return replace(energy, **joules, carbon_grams=carbon)
