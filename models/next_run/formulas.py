"""Times by formulas alone, of a run whose configuration tells its network and how it is spread."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from crosswind.data.schema.answers.predictions import MemoryNeed
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.metric import Scalar
from crosswind.data.schema.prediction import Prediction
from crosswind.data.schema.question import DEGREES, Question
from crosswind.models.analytic.case import WORKLOADS, SpreadNetwork, case_of
from crosswind.models.analytic.constants import Constants
from crosswind.models.analytic.corrected import ROWS_MIN, CorrectedPrior
from crosswind.models.analytic.memory import fits, memory_use
from crosswind.models.analytic.prior import AnalyticPrior

SHAPE = ("hidden", "layers")  # by which networks differ: a question is of one that never ran
STEPS = "steps"  # the parameter that tells how many steps a run has
COLUMN = {"data": "data_parallel", "tensor": "tensor_parallel", "pipeline": "pipeline_parallel"}


def step_seconds(question: Question) -> float:
    """By the formulas with uncalibrated constants; NaN where the configuration tells no network."""
    case = _network(question)
    return case.seconds(Constants()) if case else float("nan")


def calibrated(questions: Sequence[Question], seconds: Sequence[float], seed: int) -> CorrectedPrior | None:
    """Formulas with constants, and a correction, learned from step times of networks; None where too few are told."""
    rows = [(_columns(question), took) for question, took in zip(questions, seconds, strict=True) if _network(question)]
    if len(rows) < ROWS_MIN:
        return None
    table = pd.DataFrame([columns for columns, _ in rows])
    groups = SHAPE if all(name in table for name in SHAPE) else ()
    return CorrectedPrior(groups, seed).fit(table, np.array([took for _, took in rows]))


def predicted_by_formulas(
    questions: Sequence[Question], learned: CorrectedPrior | None = None, *, is_step: bool
) -> Prediction | None:
    """Distributions of the steps' or the runs' seconds; None where a configuration does not tell enough.

    Without `learned` the constants are anybody's guess, and the distributions wide.

    Raises: InvalidInputError for a plan that cannot be.
    """
    columns = [_columns(question) for question in questions]
    if not all(isinstance(case_of(of_question), SpreadNetwork) for of_question in columns):
        return None
    step = (learned or AnalyticPrior()).predict(pd.DataFrame(columns))
    if is_step:
        return step
    steps = [_steps(question) for question in questions]
    if None in steps:
        return None
    return Prediction(step.levels, step.values * np.array(steps, dtype=np.float64)[:, None])


def _steps(question: Question) -> float | None:
    steps = question.configuration.get(STEPS)
    return steps if isinstance(steps, int | float) and not isinstance(steps, bool) and steps >= 1 else None


def memory_need(question: Question) -> MemoryNeed | None:
    """Return what the fullest rank needs; None where the configuration tells no network."""
    case = _network(question)
    if case is None:
        return None
    needed = memory_use(case.workload, case.plan).total
    if not question.configuration.get("accelerator") or not np.isfinite(case.device.memory_bytes):
        return MemoryNeed(needed, None, None, None)
    device = case.device
    return MemoryNeed(needed, device.name, device.memory_bytes, fits(case.workload, case.plan, device))


def _network(question: Question) -> SpreadNetwork | None:
    """None where the configuration tells no network, or one that cannot be."""
    if not any(all(name in question.configuration for name in needed) for needed, _ in WORKLOADS):
        return None
    try:
        case = case_of(_columns(question))
    except InvalidInputError:
        return None
    return case if isinstance(case, SpreadNetwork) else None


def _columns(question: Question) -> Mapping[str, Any]:
    """The configuration under the names that formulas know, with its scale."""
    columns: dict[str, Scalar] = dict(question.configuration)
    for kind, names in DEGREES.items():
        degree = next((columns[name] for name in names if name in columns), None)
        if degree is not None and kind in COLUMN:
            columns[COLUMN[kind]] = degree
    columns["ranks"] = question.world_size
    if question.node_count and "ranks_per_node" not in columns:
        columns["ranks_per_node"] = -(-question.world_size // question.node_count)
    return columns
