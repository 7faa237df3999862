"""Fitting the model of runs to come, and finding out what it is worth on runs later than those it learned from."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.answers.predictions import Accuracy, Outcome, PredictionBasis
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.model import Learned, ModelRecord
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.data.store.store import Store
from crosswind.models.baseline import BASELINES, AlwaysMedian, Baseline, distribution, one_step_errors
from crosswind.models.next_run.cases import cases, conditions_of
from crosswind.models.next_run.cohort_store import ended_of, questions_of
from crosswind.models.next_run.model import NextRunModel
from crosswind.models.registry.drift import LaterRuns
from crosswind.models.registry.evidence import evidence_of
from crosswind.models.registry.trainer import Trained
from crosswind.models.scores import coverage, pinball_loss, skill
from crosswind.models.surrogate import LEVELS
from crosswind.models.surrogate.conformal import CALIBRATION_ROWS_MIN

LEARNED_SHARE = 0.75  # of the runs, the oldest; of the others it is asked
ASKED_MAX = 400  # of them, evenly spread
ASKED_MIN = 8  # on one basis; fewer tell nothing of its worth
OWN_RUNS_MAX = 100  # of a cohort, the newest, whose errors spread a naive forecast
OWN_ERRORS_MIN = 4  # of a cohort, from which on a naive forecast is spread by them


@dataclass(frozen=True)
class Asked:
    """Later runs, what was said of each, and what the naive forecasts said; all (n_runs, n_levels)."""

    seconds: Floats  # (n_runs,)
    said: Prediction
    basis: tuple[PredictionBasis, ...]
    naive: dict[str, Prediction]


def fitted(store: Store, outcome: Outcome, rows: pd.DataFrame) -> NextRunModel:
    """The model of these cases, with what it is worth."""
    conditions = conditions_of(store, outcome, rows)
    model = NextRunModel(str(outcome)).fit(rows, conditions)
    asked = ask_later(outcome, rows, conditions)
    if asked is not None:
        model.worth = worth_of(asked)
    return model


def train(store: Store, outcome: Outcome) -> Trained:
    """The model of all runs with this outcome. Raises: InvalidInputError when there are too few to validate it."""
    rows = cases(store, outcome)
    conditions = conditions_of(store, outcome, rows)
    asked = ask_later(outcome, rows, conditions)
    if asked is None:
        raise InvalidInputError(f"{len(rows)} runs with {outcome}, too few to learn from some and ask about later ones")
    model = NextRunModel(str(outcome)).fit(rows, conditions)
    model.worth = worth_of(asked)
    window = (int(rows["started_ns"].iloc[0]), int(_ends_of(rows).max()))
    learned = Learned(len(rows), *window, features=model.features, sources={"outcome": str(outcome)})
    return Trained(model, evidence_of(learned, asked.said, asked.seconds, asked.naive))


def ask_later(outcome: Outcome, rows: pd.DataFrame, conditions: pd.DataFrame | None) -> Asked | None:
    """Return what a model of the older runs says of later ones; None where there are too few of either.

    Before a run begins it hears of those that have ended by then, and of no other; what it learned of all cohorts
    stays as it was.
    """
    count = int(LEARNED_SHARE * len(rows))
    if len(rows) - count < ASKED_MIN:
        return None
    began, ended = rows["started_ns"].to_numpy(np.int64), _ends_of(rows)
    learned = ended <= began[count]
    if not learned.any():
        return None
    model = NextRunModel(str(outcome)).fit(rows[learned], None if conditions is None else conditions[learned])
    pooled = {baseline.name: _pooled_errors(baseline, model) for baseline in BASELINES}
    answers: list[tuple[float, PredictionBasis, Floats, dict[str, Floats]]] = []
    chosen = set(np.linspace(count, len(rows) - 1, ASKED_MAX).astype(np.int64).tolist())
    questions, runs = questions_of(rows), ended_of(rows)
    going = deque(sorted(np.flatnonzero(~learned).tolist(), key=ended.__getitem__))  # those that end first, first
    for place in range(count, len(rows)):
        while going and ended[going[0]] <= began[place]:
            other = going.popleft()
            model.observe(questions[other], runs[other], _row(conditions, other))
        question = questions[place]
        if place in chosen and model.knows(question.workload):
            said = model.batch([question], _row(conditions, place))
            naive = {
                baseline.name: _naive(baseline, model.earlier(question), pooled[baseline.name])
                for baseline in BASELINES
            }
            answers.append((runs[place].seconds, said.basis[0], said.seconds[0], naive))
    return _asked(answers) if len(answers) >= ASKED_MIN else None


def _row(conditions: pd.DataFrame | None, place: int) -> pd.DataFrame | None:
    return None if conditions is None else conditions[place : place + 1]


def _ends_of(rows: pd.DataFrame) -> NDArray[np.int64]:
    """Return when each run had ended and could be heard of, ns UTC; where not recorded, its seconds after it began."""
    began = rows["started_ns"].to_numpy(np.int64)
    recorded = pd.to_numeric(rows["ended_ns"]).astype("Int64")
    lasted = began + (rows["seconds"].to_numpy(np.float64) * 1e9).astype(np.int64)
    ended = recorded.fillna(pd.Series(lasted, index=rows.index)).to_numpy(np.int64)
    return np.asarray(
        np.maximum(ended, began + 1), dtype=np.int64
    )  # whatever clocks say, no run is heard of before it begins


def _asked(answers: Sequence[tuple[float, PredictionBasis, Floats, dict[str, Floats]]]) -> Asked:
    seconds, basis, said, naive = zip(*answers, strict=True)
    by_name = {
        baseline.name: Prediction(LEVELS, np.array([row[baseline.name] for row in naive])) for baseline in BASELINES
    }
    return Asked(np.array(seconds), Prediction(LEVELS, np.array(said)), basis, by_name)


def _pooled_errors(baseline: Baseline, model: NextRunModel) -> Floats:
    """Of a naive forecast one step ahead in all cohorts; two perfect ones where nothing ran twice."""
    every = [one_step_errors(baseline, seconds) for seconds in model.cohort_seconds]
    return np.concatenate([np.zeros(CALIBRATION_ROWS_MIN), *every])


def _naive(baseline: Baseline, earlier: Sequence[float], pooled: Floats) -> Floats:
    """A naive forecast spread by the errors it had in its own cohort, if they are enough, else in all; (n_levels,)."""
    seconds = np.array(earlier, dtype=np.float64)
    own = one_step_errors(baseline, seconds[-OWN_RUNS_MAX:])
    errors = own if len(own) >= OWN_ERRORS_MIN else pooled
    spread: Floats = distribution(baseline.forecast(seconds), errors).values[0]
    return spread


def worth_of(asked: Asked) -> dict[str, Accuracy]:
    """By basis, where it was asked about often enough."""
    worth = {}
    for basis in PredictionBasis:
        rows = np.array([answer_basis is basis for answer_basis in asked.basis])
        if rows.sum() < ASKED_MIN:
            continue
        said, seconds = _part(asked.said, rows), asked.seconds[rows]
        naive = _loss(_part(asked.naive[AlwaysMedian.name], rows), seconds)
        gained = skill(_loss(said, seconds), naive) if naive > 0 else None
        worth[str(basis)] = Accuracy(int(rows.sum()), gained, coverage(said, seconds, low=0.05, high=0.95))
    return worth


def _part(prediction: Prediction, rows: Floats) -> Prediction:
    return Prediction(prediction.levels, prediction.values[rows])


def _loss(prediction: Prediction, seconds: Floats) -> float:
    return pinball_loss(Prediction(prediction.levels, np.log(prediction.values)), np.log(seconds))


def later_runs(store: Store, outcome: Outcome, record: ModelRecord, model: NextRunModel) -> LaterRuns | None:
    """Return what a registered model says of the runs that began after its data window; None where there are none."""
    rows = cases(store, outcome)
    later = rows[(rows["started_ns"] > record.evidence.learned.to_ns) & rows["workload"].map(model.knows)]
    if later.empty:
        return None
    batch = model.batch(questions_of(later), conditions_of(store, outcome, later))
    started = later["started_ns"].to_numpy(np.int64)
    return LaterRuns(started, Prediction(LEVELS, batch.seconds), later["seconds"].to_numpy(np.float64))
