"""How long the next run will take, as a distribution, and whether a model earned the right to say so."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from crosswind.data.errors import InvalidInputError
from crosswind.data.prediction import Floats, Prediction
from crosswind.data.trial import Configuration
from crosswind.models.baseline import BASELINES, Baseline, distribution
from crosswind.models.history import (
    NextQuestion,
    Rows,
    check_history,
    first_runs,
    is_same_cohort,
    outside_warnings,
    repeated_runs,
)
from crosswind.models.scores import pinball_loss
from crosswind.models.surrogate import LEVELS, Surrogate, XgboostQuantileSurrogate
from crosswind.models.surrogate.conformal import ConformalSurrogate, promised_coverage

ERRORS_MIN = 4  # earlier forecasts to learn a spread from; promises 60 %
OWN_ERRORS_MIN = 4  # a cohort with fewer shares the others' relative errors
VALIDATED_MIN = 8  # with fewer validated runs a model's lead is luck
VALIDATED_MAX = 200
SURROGATE_FITS = 12  # refits over the validated runs; between two the model is older than it need be, never newer
SURROGATE = "surrogate"


@dataclass(frozen=True)
class NextRun:
    """Quantiles of the next run's seconds, who made them, and on what grounds.

    `losses` are mean pinball losses of log seconds (0.01 = 1 %) of every method, one step ahead over the
    `validated_runs` newest comparable runs; empty when there were none. `promised_coverage` is the two-sided coverage
    that the widest interval can promise with the errors seen so far, if the next run is like them.
    """

    levels: tuple[float, ...]
    seconds: tuple[float, ...]
    method: str  # "surrogate" or the name of a baseline
    losses: Mapping[str, float]
    validated_runs: int
    runs: int
    cohort_runs: int
    promised_coverage: float
    warnings: tuple[str, ...]


def predict_next(
    history: pd.DataFrame,
    configuration: Configuration,
    *,
    world_size: int,
    conditions: Mapping[str, float] | None = None,
    make_surrogate: Callable[[], Surrogate] = XgboostQuantileSurrogate,
) -> NextRun:
    """The distribution of the next run's seconds, by the surrogate where it beats every naive baseline.

    history: one row an earlier run, oldest first; columns `configuration` (mapping), `world_size`, `seconds` (median
    step), every other column a numeric condition at the run's start, NaN where unknown. The methods compete one step
    ahead in the order of time. A configuration that never ran before is predicted from the others' first runs.

    Raises: InvalidInputError on a malformed history, or when too few runs can be compared: it says how many.
    """
    check_history(history)
    question = NextQuestion(configuration, world_size, conditions or {})
    cohort_runs = int(is_same_cohort(history, question).sum())
    rows = _rows(history, question, cohort_runs)
    losses, validated_runs = _validate(rows, make_surrogate)
    method = _winner(losses, validated_runs)
    prediction, promise = _predict(rows, method, make_surrogate)
    warnings = outside_warnings(history, question)
    if cohort_runs == 0:
        warnings = [f"this configuration never ran before: it is predicted from {len(rows) + 1} others", *warnings]
    return NextRun(
        levels=prediction.levels,
        seconds=tuple(map(float, prediction.values[0])),
        method=method,
        losses=losses,
        validated_runs=validated_runs,
        runs=len(history),
        cohort_runs=cohort_runs,
        promised_coverage=min(promise, LEVELS[-1] - LEVELS[0]),
        warnings=tuple(warnings),
    )


def _rows(history: pd.DataFrame, question: NextQuestion, cohort_runs: int) -> Rows:
    if cohort_runs:
        rows = repeated_runs(history, question)
        if len(rows) < ERRORS_MIN:
            raise InvalidInputError(
                f"{len(rows)} repeats among {len(history)} earlier runs, expected at least {ERRORS_MIN}: "
                f"run this configuration {ERRORS_MIN - len(rows)} more times first"
            )
        return rows
    if history.empty:
        raise InvalidInputError(f"0 earlier runs, expected at least {ERRORS_MIN + 1}: run this configuration first")
    rows = first_runs(history, question)
    if len(rows) < ERRORS_MIN:
        raise InvalidInputError(
            f"this configuration never ran with world_size {question.world_size} and {len(rows) + 1} others did, "
            f"expected at least {ERRORS_MIN + 1} others: run it {ERRORS_MIN + 1} times first"
        )
    return rows


def _winner(losses: Mapping[str, float], validated_runs: int) -> str:
    names = [baseline.name for baseline in BASELINES]
    if not losses:
        return names[0]
    if SURROGATE in losses and validated_runs >= VALIDATED_MIN:
        names.append(SURROGATE)
    return min(names, key=lambda name: losses[name])  # a tie goes to the simpler one


def _validate(rows: Rows, make_surrogate: Callable[[], Surrogate]) -> tuple[dict[str, float], int]:
    """The pinball loss of every method on the newest rows, each predicted from the rows before it, and their number."""
    start = max(ERRORS_MIN, len(rows) // 2, len(rows) - VALIDATED_MAX)
    if start >= len(rows):
        return {}, 0
    truth = rows.seconds[start:]
    losses = {baseline.name: _loss(_naive(rows, baseline, start), truth) for baseline in BASELINES}
    losses[SURROGATE] = _loss(_learned(rows, make_surrogate, start), truth)
    return losses, len(truth)


def _loss(values: Floats, seconds: Floats) -> float:
    return pinball_loss(Prediction(LEVELS, np.log(values)), np.log(seconds))


def _naive(rows: Rows, baseline: Baseline, start: int) -> Floats:
    """One-step-ahead quantiles of the rows from `start` on, shape (n - start, n_levels)."""
    forecasts = np.array([baseline.forecast(earlier) for earlier in rows.earlier])
    errors = np.log(rows.seconds) - np.log(forecasts[:-1])
    made = [distribution(forecasts[index], _spread(rows, errors, index)).values for index in range(start, len(rows))]
    return np.concatenate(made)


def _spread(rows: Rows, errors: Floats, index: int) -> Floats:
    """The forecast errors known before row `index`: of its own group if they are enough, else of all."""
    own = errors[:index][rows.group[:index] == rows.group[index]]
    return own if len(own) >= OWN_ERRORS_MIN else errors[:index]


def _learned(rows: Rows, make_surrogate: Callable[[], Surrogate], start: int) -> Floats:
    ratios = rows.seconds / rows.reference[:-1]
    made = []
    for block in np.array_split(np.arange(start, len(rows)), min(SURROGATE_FITS, len(rows) - start)):
        model = ConformalSurrogate(make_surrogate()).fit(rows.X[: block[0]], ratios[: block[0]])
        made.append(model.predict(rows.X[block]).values * rows.reference[block, None])
    return np.concatenate(made)


def _predict(rows: Rows, method: str, make_surrogate: Callable[[], Surrogate]) -> tuple[Prediction, float]:
    """The chosen method's distribution of the run asked about, and the coverage it can promise."""
    count = len(rows)
    if method == SURROGATE:
        model = ConformalSurrogate(make_surrogate()).fit(rows.X[:count], rows.seconds / rows.reference[:count])
        values = model.predict(rows.X[count:]).values * rows.reference[count]
        return Prediction(LEVELS, values), model.promised_coverage
    [baseline] = [each for each in BASELINES if each.name == method]
    forecasts = np.array([baseline.forecast(earlier) for earlier in rows.earlier])
    errors = _spread(rows, np.log(rows.seconds) - np.log(forecasts[:count]), count)
    return distribution(forecasts[count], errors), promised_coverage(len(errors))
