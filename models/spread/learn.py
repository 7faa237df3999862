"""Learning of the effect of conditions, and of the scatter of runs, from the runs of many cohorts."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats
from crosswind.models.scores import pinball
from crosswind.models.spread.cohort import CohortState
from crosswind.models.spread.level import distances, drifts
from crosswind.models.spread.linear_quantiles import LinearQuantiles
from crosswind.models.spread.modes import Modes
from crosswind.models.surrogate.conformal import conformal_corrections
from crosswind.models.surrogate.surrogate import LEVELS

ROWS_MIN = 20  # below, quantiles are those of the first few runs of any cohort
ROUNDS = 2  # levels, then conditions, then levels without the effect of conditions, then conditions
SCALE_RUNS = 10.0  # a cohort's scale counts as if so many runs of the usual scatter were added
FOLDS = 5  # blocks of time
GROUP_ROWS_MIN = 200  # of a cohort that gets corrections of its own: its 5 % quantile rests on ten of its runs
Members = Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True)
class Learned:
    """The model learned from `rows` runs; quantiles are in units of a cohort's scale, corrections at LEVELS."""

    model: LinearQuantiles
    corrections: Floats
    cohorts: Mapping[str, CohortState]
    uses_conditions: bool
    rows: int

    def quantiles(self, matrix: Floats) -> Floats:
        """Corrected quantiles given the conditions, shape (n_rows, n_levels)."""
        return np.sort(self.model.predict(matrix) + self.corrections, axis=1)


@dataclass(frozen=True)
class _Fitted:
    """A model of all rows: `target` in units of the scale, NaN for rows without others to compare with."""

    model: LinearQuantiles
    target: Floats
    scales: Mapping[str, float]
    drifts: Mapping[str, bool]
    cleaned: Floats

    @property
    def has_target(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.target)


def learn(members: Members, logs: Floats, matrix: Floats) -> Learned:
    """Learn from the rows of each cohort, log seconds (n_runs,) in the order of time, and conditions (n_runs, n)."""
    plain = _fitted(members, logs, np.zeros_like(matrix))
    if plain.has_target.sum() < ROWS_MIN:
        return Learned(plain.model, np.zeros(len(LEVELS)), _states(members, plain, None, matrix), False, 0)
    errors, loss = _unseen(plain, np.zeros_like(matrix))
    conditioned = _fitted(members, logs, matrix) if matrix.any() else plain
    conditioned_errors, conditioned_loss = _unseen(conditioned, matrix)
    uses = conditioned_loss < loss
    best, left = (conditioned, conditioned_errors) if uses else (plain, errors)
    corrections = conformal_corrections(left, LEVELS)
    cohorts = _states(members, best, left - corrections, matrix)
    return Learned(best.model, corrections, cohorts, bool(uses), int(best.has_target.sum()))


def _fitted(members: Members, logs: Floats, matrix: Floats) -> _Fitted:
    cleaned, model = logs, LinearQuantiles(np.zeros(len(LEVELS)), np.zeros((len(LEVELS), matrix.shape[1])))
    drifting = {name: drifts(logs[rows]) for name, rows in members.items()}
    for _ in range(ROUNDS):
        away = np.full(len(logs), np.nan)
        for name, rows in members.items():
            away[rows] = distances(logs[rows], cleaned[rows], drifts=drifting[name])
        scales = _scales(members, away)
        scale = _by_row(members, scales, len(logs))
        target, is_known, before = away / scale, ~np.isnan(away), cleaned
        if is_known.sum() < ROWS_MIN:
            break
        model = LinearQuantiles.fit(matrix[is_known], target[is_known])
        cleaned = logs - scale * model.shift(matrix)
    return _Fitted(model, target, scales, drifting, before)


def _scales(members: Members, away: Floats) -> dict[str, float]:
    """The mean distance of each cohort from the median over that of all, drawn to 1 where it has few runs."""
    finite = away[~np.isnan(away)]
    if not len(finite):
        return dict.fromkeys(members, 1.0)
    far = np.abs(away - np.median(finite))
    usual = max(float(np.nanmean(far)), np.finfo(np.float64).tiny)
    scales = {}
    for name, rows in members.items():
        own = far[rows][~np.isnan(far[rows])]
        scales[name] = float((own.sum() + SCALE_RUNS * usual) / (len(own) + SCALE_RUNS) / usual)
    return scales


def _unseen(fitted: _Fitted, matrix: Floats) -> tuple[Floats, float]:
    """Errors at every level of rows left out in blocks of time, (n_targets, n_levels), and their pinball loss."""
    target, columns = fitted.target[fitted.has_target], matrix[fitted.has_target]
    block = np.arange(len(target)) * FOLDS // len(target)
    errors = np.empty((len(target), len(LEVELS)))
    for number in range(FOLDS):
        left_out = block == number
        model = LinearQuantiles.fit(columns[~left_out], target[~left_out])
        errors[left_out] = target[left_out, None] - model.predict(columns[left_out])
    return errors, float(pinball(errors, LEVELS).mean())


def _states(members: Members, fitted: _Fitted, errors: Floats | None, matrix: Floats) -> dict[str, CohortState]:
    """The state of each cohort; `errors` are of the rows with a target, after the common correction."""
    left = np.full((len(matrix), len(LEVELS)), np.nan)
    if errors is not None:
        left[fitted.has_target] = errors
    quiet = fitted.target - fitted.model.shift(matrix)
    states = {}
    for name, rows in members.items():
        modes, corrections = _own(quiet[rows], left[rows])
        states[name] = CohortState(fitted.cleaned[rows], fitted.scales[name], fitted.drifts[name], modes, corrections)
    return states


def _own(quiet: Floats, errors: Floats) -> tuple[Floats | None, Floats | None]:
    """A cohort's own quantiles if its runs have two modes, else its own corrections if it has enough runs."""
    modes = Modes.of(quiet[~np.isnan(quiet)])
    if modes is not None:
        return modes.quantiles(), None
    own = errors[~np.isnan(errors[:, 0])]
    return None, conformal_corrections(own, LEVELS) if len(own) >= GROUP_ROWS_MIN else None


def _by_row(members: Members, values: Mapping[str, float], count: int) -> Floats:
    by_row = np.ones(count)
    for name, rows in members.items():
        by_row[rows] = values[name]
    return by_row
