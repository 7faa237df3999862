"""Permutation importance: how much worse trees predict the excess once a column is shuffled."""

from collections.abc import Sequence

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from crosswind.data.schema.prediction import Floats

ROWS_MIN = 100  # with fewer runs trees learn nothing from so many columns
FOLDS = 4  # stretches of time, each left out in turn
REPEATS = 5
BINS = 32  # of a column's ranks: of many columns, looking through 255 took most of the time
TREES = {
    "max_iter": 60,
    "max_leaf_nodes": 8,
    "min_samples_leaf": 10,
    "learning_rate": 0.1,
    "max_bins": BINS,
    "early_stopping": False,
}


def importances(columns: Floats, outcome: Floats, asked: Sequence[int], *, seed: int = 0) -> Floats | None:
    """Return the rise of the squared error on runs left out when a column is shuffled, as a share of the variance.

    columns (n, m), NaN where missing; outcome (n,), both in the order of time; asked: places of the columns, in the
    order of the result. None where rows are too few, or where trees predict nothing of runs left out.
    Source: Breiman 2001, permutation importance; on held-out stretches of time.
    """
    if len(outcome) < ROWS_MIN or not asked:
        return None
    random = np.random.default_rng(seed)
    fold = np.arange(len(outcome)) * FOLDS // len(outcome)
    rises, errors, spread = np.zeros(len(asked)), 0.0, 0.0
    for number in range(FOLDS):
        seen, left_out = fold != number, fold == number
        without_values = np.isnan(columns[seen]).all(axis=0)  # scikit-learn bins no such column
        usable = np.where(without_values, 0.0, columns)
        trees = HistGradientBoostingRegressor(random_state=seed, **TREES).fit(usable[seen], outcome[seen])
        error = _errors(trees, usable[left_out], outcome[left_out])
        copies = _shuffled(usable[left_out], asked, random)
        rises += _errors_of(trees, copies, outcome[left_out]).reshape(len(asked), REPEATS).mean(axis=1) - error
        errors, spread = errors + error, spread + float(((outcome[left_out] - outcome[seen].mean()) ** 2).sum())
    return None if errors >= spread else rises / spread


def _errors(trees: HistGradientBoostingRegressor, rows: Floats, outcome: Floats) -> float:
    return float(((trees.predict(rows) - outcome) ** 2).sum())


def _shuffled(rows: Floats, asked: Sequence[int], random: np.random.Generator) -> Floats:
    """The rows, each asked column shuffled in some of the copies, (n_asked * REPEATS, n_rows, m)."""
    copies = np.repeat(rows[None], len(asked) * REPEATS, axis=0)
    for place, column in enumerate(np.repeat(asked, REPEATS)):
        copies[place, :, column] = random.permutation(rows[:, column])
    return copies


def _errors_of(trees: HistGradientBoostingRegressor, copies: Floats, outcome: Floats) -> Floats:
    """The squared error of each copy, (n_copies,); all are predicted at once."""
    predicted = trees.predict(copies.reshape(-1, copies.shape[2])).reshape(len(copies), len(outcome))
    errors: Floats = ((predicted - outcome) ** 2).sum(axis=1)
    return errors
