"""Times by formulas alone, for runs whose configuration describes the network and its plan of parallelism."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from crosswind.data.devices.computing import ACCELERATOR
from crosswind.data.schema.answers.predictions import MemoryNeed
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Prediction
from crosswind.data.schema.question import DEGREES, Question
from crosswind.models.analytic.machine.constants import Constants
from crosswind.models.analytic.prior.case import WORKLOADS, SpreadNetwork, case_of
from crosswind.models.analytic.prior.corrected import ROWS_MIN, CorrectedPrior
from crosswind.models.analytic.prior.prior import AnalyticPrior
from crosswind.models.analytic.step.memory import fits, memory_use

SHAPE = ("hidden", "layers")  # by which networks differ: a question is of one that never ran
STEPS = "steps"  # the parameter for the number of steps
COLUMN = {"data": "data_parallel", "tensor": "tensor_parallel", "pipeline": "pipeline_parallel"}


def step_seconds(question: Question) -> float:
    """Seconds of a step by formulas with uncalibrated constants; NaN where the configuration describes no network."""
    case = _network(question)
    return case.seconds(Constants()) if case else float("nan")


def calibrated(questions: Sequence[Question], seconds: Sequence[float], seed: int) -> CorrectedPrior | None:
    """Formulas whose constants and correction are learned from step times; None with fewer than ROWS_MIN networks."""
    rows = [(_columns(question), took) for question, took in zip(questions, seconds, strict=True) if _network(question)]
    if len(rows) < ROWS_MIN:
        return None
    table = pd.DataFrame([columns for columns, _ in rows])
    groups = SHAPE if all(name in table for name in SHAPE) else ()
    return CorrectedPrior(groups, seed).fit(table, np.array([took for _, took in rows]))


def predicted_by_formulas(
    questions: Sequence[Question], learned: CorrectedPrior | None = None, *, is_step: bool
) -> Prediction | None:
    """Distributions of the steps' or the runs' seconds; None where a configuration does not say enough.

    Without `learned` the constants have their priors, and the distributions are wide.

    Raises: InvalidInputError for an impossible plan.
    """
    columns = [_columns(question) for question in questions]
    if not all(isinstance(case_of(of_question), SpreadNetwork) for of_question in columns):
        return None
    step = (learned or AnalyticPrior()).predict(pd.DataFrame(columns))
    if is_step:
        return step
    steps = [steps_in(question.configuration) for question in questions]
    if None in steps:
        return None
    return Prediction(step.levels, step.values * np.array(steps, dtype=np.float64)[:, None])


def steps_in(configuration: Mapping[str, Any]) -> float | None:
    """Return the number of steps that a configuration names; None without any."""
    steps = configuration.get(STEPS)
    return steps if isinstance(steps, int | float) and not isinstance(steps, bool) and steps >= 1 else None


def memory_need(question: Question) -> MemoryNeed | None:
    """Return the memory that the fullest rank needs; None where the configuration describes no network."""
    case = _network(question)
    if case is None:
        return None
    needed = memory_use(case.workload, case.plan).total
    if not _columns(question).get(ACCELERATOR) or not np.isfinite(case.device.memory_bytes):
        return MemoryNeed(needed, None, None, None)
    device = case.device
    return MemoryNeed(needed, device.name, device.memory_bytes, fits(case.workload, case.plan, device))


def formula_columns(configuration: Mapping[str, Any], world_size: int, node_count: float | None) -> dict[str, Any]:
    """Return a configuration under the column names of the formulas, with its scale."""
    columns = dict(configuration)
    for kind, names in DEGREES.items():
        degree = next((columns[name] for name in names if name in columns), None)
        if degree is not None and kind in COLUMN:
            columns[COLUMN[kind]] = degree
    columns["ranks"] = world_size
    if node_count and "ranks_per_node" not in columns:
        columns["ranks_per_node"] = -(-world_size // int(node_count))
    return columns


def network_in(columns: Mapping[str, Any]) -> SpreadNetwork | None:
    """Return the network that these columns describe; None where they describe none, or an impossible one."""
    if not any(all(name in columns for name in needed) for needed, _ in WORKLOADS):
        return None
    try:
        case = case_of(columns)
    except InvalidInputError:
        return None
    return case if isinstance(case, SpreadNetwork) else None


def _network(question: Question) -> SpreadNetwork | None:
    return network_in(_columns(question))


def _columns(question: Question) -> Mapping[str, Any]:
    columns = formula_columns(question.configuration, question.world_size, question.node_count)
    if question.facts.accelerator is not None:
        columns.setdefault(ACCELERATOR, question.facts.accelerator)
    return columns
