"""Log ratios of a run to the expectation from very few runs of its cohort, or none: learned from all cohorts."""

from collections.abc import Mapping

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.spread.level import EXPECTED_RUNS, OWN_RUNS_MIN, level_of
from crosswind.models.surrogate.conformal import CALIBRATION_ROWS_MIN, conformal_quantile
from crosswind.models.surrogate.surrogate import LEVELS


def few_run_quantiles(logs: Mapping[str, Floats], expected: Mapping[str, Floats]) -> dict[int, Floats]:
    """Quantiles at LEVELS of the log ratio to the level of earlier runs, by their number, 0 to OWN_RUNS_MIN - 1.

    A number without enough examples is left out. A run without earlier ones is compared with another model's
    expectation or, where that is NaN, with the level of all other cohorts.
    """
    errors = {0: _of_none(logs, expected)} | {count: _of_few(logs, count) for count in range(1, OWN_RUNS_MIN)}
    return {
        count: np.array([conformal_quantile(misses, level) for level in LEVELS])
        for count, misses in errors.items()
        if len(misses) >= CALIBRATION_ROWS_MIN
    }


def shrunken(own: float, runs: int, expected: float) -> float:
    """Return the level of own runs drawn to another model's expectation, NaN where there is none; in log seconds."""
    if np.isnan(expected):
        return own
    if runs == 0:
        return expected
    return (runs * own + EXPECTED_RUNS * expected) / (runs + EXPECTED_RUNS)


def _of_few(logs: Mapping[str, Floats], count: int) -> Floats:
    """Errors of every run forecast from the `count` runs of its cohort just before it."""
    return np.array(
        [
            own[place] - level_of(own[place - count : place])
            for own in logs.values()
            for place in range(count, len(own))
        ],
        dtype=np.float64,
    )


def _of_none(logs: Mapping[str, Floats], expected: Mapping[str, Floats]) -> Floats:
    levels = {cohort: level_of(own) for cohort, own in logs.items()}
    misses = []
    for cohort, own in logs.items():
        others = [level for other, level in levels.items() if other != cohort]
        reference = float(np.median(others)) if others else np.nan
        misses.append(own - np.where(np.isnan(expected[cohort]), reference, expected[cohort]))
    errors: Floats = np.concatenate([np.empty(0), *misses])
    return errors[~np.isnan(errors)]
