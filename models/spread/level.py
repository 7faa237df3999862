"""The usual level of a cohort, in log seconds, and the distances of its runs from it."""

from collections.abc import Sequence

import numpy as np

from crosswind.data.schema.prediction import Floats

LEVEL_QUANTILES = (0.25, 0.4, 0.5)  # disturbances only ever add time, so the lower half agrees better than the upper
OWN_RUNS_MIN = 4  # with fewer, the spread is that of the first few runs of all cohorts
HALF_LIFE_RUNS = 8.0
DRIFT_RUNS_MIN = 16
DRIFT_GAIN = 0.8  # recent runs count more only where that takes a fifth off the errors: less is luck
EXPECTED_RUNS = 2.0  # weight of another model's expectation, in runs


def level_of(logs: Floats, *, drifts: bool = False) -> float:
    """The mean of a few middle and lower quantiles of at least one value; `drifts` lets recent ones count more."""
    weights = 0.5 ** (np.arange(len(logs))[::-1] / HALF_LIFE_RUNS) if drifts else np.ones(len(logs))
    return float(np.mean(weighted_quantiles(logs, weights, LEVEL_QUANTILES)))


def weighted_quantiles(values: Floats, weights: Floats, levels: Sequence[float]) -> Floats:
    """Quantiles of weighted values, linear between the places where each value's weights reach; equal weights: numpy's.

    A value of weight w in a sum W of n values is at (the weight before it) / (W - w), spread over 0 ... 1.
    """
    order = np.argsort(values, kind="stable")
    ordered, sorted_weights = values[order], weights[order]
    if len(ordered) == 1:
        return np.full(len(levels), ordered[0])
    middle = np.cumsum(sorted_weights) - sorted_weights / 2
    places = (middle - middle[0]) / (middle[-1] - middle[0])
    return np.interp(levels, places, ordered)


def drifts(logs: Floats) -> bool:
    """Return whether the newest runs predict a cohort's next one clearly better than all of them do."""
    if len(logs) < DRIFT_RUNS_MIN:
        return False
    recent, whole = (float(np.abs(errors_ahead(logs, drifts=is_drifting)).mean()) for is_drifting in (True, False))
    return recent < DRIFT_GAIN * whole


def errors_ahead(logs: Floats, *, drifts: bool) -> Floats:
    """Distances of the runs from OWN_RUNS_MIN on from the level of those before them, (n_runs - OWN_RUNS_MIN,)."""
    places = range(OWN_RUNS_MIN, len(logs))
    return np.array([logs[place] - level_of(logs[:place], drifts=drifts) for place in places])


def distances(logs: Floats, levels_from: Floats, *, drifts: bool) -> Floats:
    """Distances of runs, in log seconds, from the level of the cohort's other runs, shape (n_runs,).

    Levels are taken of `levels_from`: the runs' own values, or these without the effect of conditions. In a drifting
    cohort the level is that of earlier runs alone, and NaN for the first ones; so it is for all runs of a cohort with
    fewer than OWN_RUNS_MIN.
    """
    away = np.full(len(logs), np.nan)
    if len(logs) < OWN_RUNS_MIN:
        return away
    for place in range(OWN_RUNS_MIN if drifts else 0, len(logs)):
        others = levels_from[:place] if drifts else np.delete(levels_from, place)
        away[place] = logs[place] - level_of(others, drifts=drifts)
    return away
