"""Fitting of the next-run model, and its validation on runs later than those it learned from."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.answers.predictions import Accuracy, Outcome, QuestionKind
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.model import Learned, ModelRecord
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.data.store.store import Store
from crosswind.models.baseline import BASELINES, AlwaysMedian, Baseline, distribution, one_step_errors
from crosswind.models.next_run.cases import cases, conditions_of
from crosswind.models.next_run.cohort_store import ended_runs, questions_of
from crosswind.models.next_run.model import NextRunModel
from crosswind.models.next_run.run_trees import RunTrees
from crosswind.models.registry.drift import LaterRuns
from crosswind.models.registry.evidence import evidence_of
from crosswind.models.registry.trainer import Trained
from crosswind.models.scores import coverage, pinball_loss, skill
from crosswind.models.surrogate import LEVELS
from crosswind.models.surrogate.conformal import CALIBRATION_ROWS_MIN

LEARNED_SHARE = 0.75  # of the runs, the oldest; the model is validated on the others
VALIDATED_MAX = 400  # of them, evenly spread
VALIDATED_MIN = 8  # of one kind of question; fewer say nothing about its accuracy
OWN_RUNS_MAX = 100  # of a cohort, the newest, whose errors spread a naive forecast
OWN_ERRORS_MIN = 4  # of a cohort, from which on a naive forecast is spread by them


@dataclass(frozen=True)
class Validation:
    """Later runs, their predictions by the model and by the naive forecasts, (n_runs, n_levels) each."""

    seconds: Floats  # (n_runs,)
    predicted: Prediction
    kinds: tuple[QuestionKind, ...]
    naive: dict[str, Prediction]


def fitted(store: Store, outcome: Outcome, rows: pd.DataFrame) -> NextRunModel:
    """The model of these cases, with its track records."""
    conditions = conditions_of(store, outcome, rows)
    model = NextRunModel(str(outcome)).fit(rows, conditions)
    validation = validate(outcome, rows, conditions)
    if validation is not None:
        model.track_records |= track_records(validation)
    return model


def train(store: Store, outcome: Outcome, trees_of: Callable[[int | None], RunTrees | None] | None = None) -> Trained:
    """The model of all runs with this outcome. Raises: InvalidInputError when there are too few to validate it.

    `trees_of` learns trees of all runs that ended by a time, or of all; they answer for new cohorts where they are
    better than the cohorts on the later runs.
    """
    rows = cases(store, outcome)
    conditions = conditions_of(store, outcome, rows)
    validation = validate(outcome, rows, conditions)
    if validation is None:
        raise InvalidInputError(
            f"{len(rows)} runs with {outcome}, too few to learn from some and to validate on later ones"
        )
    model = NextRunModel(str(outcome)).fit(rows, conditions)
    sources = {"outcome": str(outcome)}
    if trees_of is not None:
        by_trees = validate(outcome, rows, conditions, trees_of(_first_validated(rows)))
        if by_trees is not None and _log_loss(by_trees) < _log_loss(validation):
            validation, trees = by_trees, trees_of(None)
            model.with_trees(trees)
            sources["trees"] = f"{trees.rows if trees else 0} runs"
    model.track_records |= track_records(validation)
    window = (int(rows["started_ns"].iloc[0]), int(ends_of(rows).max()))
    learned = Learned(len(rows), *window, features=model.features, sources=sources)
    return Trained(model, evidence_of(learned, validation.predicted, validation.seconds, validation.naive))


def _first_validated(rows: pd.DataFrame) -> int:
    return int(rows["started_ns"].iloc[int(LEARNED_SHARE * len(rows))])


def _log_loss(validation: Validation) -> float:
    return _loss(validation.predicted, validation.seconds)


def validate(
    outcome: Outcome, rows: pd.DataFrame, conditions: pd.DataFrame | None, trees: RunTrees | None = None
) -> Validation | None:
    """Validate a model of the older runs on later ones; None where there are too few of either.

    Before a run is predicted, the runs that ended before its start are added to their cohorts; what was learned from
    all cohorts together is not learned again.
    """
    count = int(LEARNED_SHARE * len(rows))
    if len(rows) - count < VALIDATED_MIN:
        return None
    began, ended = rows["started_ns"].to_numpy(np.int64), ends_of(rows)
    learned = ended <= began[count]
    if not learned.any():
        return None
    model = NextRunModel(str(outcome)).fit(rows[learned], None if conditions is None else conditions[learned])
    model.with_trees(trees)
    pooled = {baseline.name: _pooled_errors(baseline, model) for baseline in BASELINES}
    answers: list[tuple[float, QuestionKind, Floats, dict[str, Floats]]] = []
    chosen = set(np.linspace(count, len(rows) - 1, VALIDATED_MAX).astype(np.int64).tolist())
    questions, runs = questions_of(rows), ended_runs(rows)
    running = deque(sorted(np.flatnonzero(~learned).tolist(), key=ended.__getitem__))  # those that end first, first
    for place in range(count, len(rows)):
        while running and ended[running[0]] <= began[place]:
            other = running.popleft()
            model.observe(questions[other], runs[other], _row(conditions, other))
        question = questions[place]
        if place in chosen and model.has_run(question.workload):
            predicted = model.batch([question], _row(conditions, place))
            naive = {
                baseline.name: _naive(baseline, model.earlier(question), pooled[baseline.name])
                for baseline in BASELINES
            }
            answers.append((runs[place].seconds, model.kind(question), predicted.seconds[0], naive))
    return _validation(answers) if len(answers) >= VALIDATED_MIN else None


def _row(conditions: pd.DataFrame | None, place: int) -> pd.DataFrame | None:
    return None if conditions is None else conditions[place : place + 1]


def ends_of(rows: pd.DataFrame) -> NDArray[np.int64]:
    """Return the time from which each run is known, ns UTC (n_runs,): its end, or its seconds after its start."""
    began = rows["started_ns"].to_numpy(np.int64)
    recorded = pd.to_numeric(rows["ended_ns"]).astype("Int64")
    lasted = began + (rows["seconds"].to_numpy(np.float64) * 1e9).astype(np.int64)
    ended = recorded.fillna(pd.Series(lasted, index=rows.index)).to_numpy(np.int64)
    # Clocks may be wrong, but no run is known before it begins.
    return np.asarray(np.maximum(ended, began + 1), dtype=np.int64)


def _validation(answers: Sequence[tuple[float, QuestionKind, Floats, dict[str, Floats]]]) -> Validation:
    seconds, kinds, predicted, naive = zip(*answers, strict=True)
    by_name = {
        baseline.name: Prediction(LEVELS, np.array([row[baseline.name] for row in naive])) for baseline in BASELINES
    }
    return Validation(np.array(seconds), Prediction(LEVELS, np.array(predicted)), kinds, by_name)


def _pooled_errors(baseline: Baseline, model: NextRunModel) -> Floats:
    """Errors of a naive forecast one run ahead in all cohorts, (n_errors,); two of zero where nothing ran twice."""
    every = [one_step_errors(baseline, seconds) for seconds in model.cohort_seconds]
    return np.concatenate([np.zeros(CALIBRATION_ROWS_MIN), *every])


def _naive(baseline: Baseline, earlier: Sequence[float], pooled: Floats) -> Floats:
    """A naive forecast spread by its errors in its own cohort if they are enough, else in all cohorts; (n_levels,)."""
    seconds = np.array(earlier, dtype=np.float64)
    own = one_step_errors(baseline, seconds[-OWN_RUNS_MAX:])
    errors = own if len(own) >= OWN_ERRORS_MIN else pooled
    spread: Floats = distribution(baseline.forecast(seconds), errors).values[0]
    return spread


def track_records(validation: Validation) -> dict[str, Accuracy]:
    """Accuracy by the kind of question, where at least VALIDATED_MIN runs of it were predicted."""
    records = {}
    for kind in QuestionKind:
        rows = np.array([own is kind for own in validation.kinds])
        if rows.sum() >= VALIDATED_MIN:
            naive = _part(validation.naive[AlwaysMedian.name], rows)
            records[str(kind)] = _accuracy(_part(validation.predicted, rows), naive, validation.seconds[rows])
    return records


def _accuracy(predicted: Prediction, naive: Prediction, seconds: Floats) -> Accuracy:
    lost = _loss(naive, seconds)
    gained = skill(_loss(predicted, seconds), lost) if lost > 0 else None
    error = float(np.median(np.abs(predicted.at(0.5) / seconds - 1)))
    return Accuracy(len(seconds), gained, coverage(predicted, seconds, low=0.05, high=0.95), median_error=error)


def _part(prediction: Prediction, rows: Floats) -> Prediction:
    return Prediction(prediction.levels, prediction.values[rows])


def _loss(prediction: Prediction, seconds: Floats) -> float:
    return pinball_loss(Prediction(prediction.levels, np.log(prediction.values)), np.log(seconds))


def later_runs(store: Store, outcome: Outcome, record: ModelRecord, model: NextRunModel) -> LaterRuns | None:
    """Return a registered model's predictions of the runs that began after its data window; None without any."""
    rows = cases(store, outcome)
    later = rows[(rows["started_ns"] > record.evidence.learned.to_ns) & rows["workload"].map(model.has_run)]
    if later.empty:
        return None
    batch = model.batch(questions_of(later), conditions_of(store, outcome, later))
    started = later["started_ns"].to_numpy(np.int64)
    return LaterRuns(started, Prediction(LEVELS, batch.seconds), later["seconds"].to_numpy(np.float64))
