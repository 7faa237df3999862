"""Lasting changes of the time of a workload's runs, looking back over weeks: regressions and improvements."""

from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.answers.weather import LevelChange
from crosswind.data.schema.prediction import Floats
from crosswind.models.forecast.change_points import Segment, segments

SHORTEST = 5  # runs that a level must last
NOTICED = 0.05  # smaller changes are not reported
ROUNDS = 4


def level_changes(runs: pd.DataFrame) -> list[LevelChange]:
    """Changes of level common to the cohorts, oldest first; columns started_ns cohort step_mean_seconds, any order.

    A run's log time is its cohort's usual one plus a level of its time; both are found in turns, by medians. What
    came with another configuration is another cohort's, and no change.
    """
    ordered = runs.sort_values("started_ns", kind="stable")
    if len(ordered) < 2 * SHORTEST:
        return []
    levels = levelled(ordered)[1]
    started_ns = ordered["started_ns"].to_numpy(np.int64)
    changes = [_change(started_ns, before, after) for before, after in pairwise(levels)]
    return [change for change in changes if abs(np.log(change.ratio)) >= np.log1p(NOTICED)]


def levelled(ordered: pd.DataFrame) -> tuple[Floats, list[Segment]]:
    """Return the log time of runs over their cohort's usual one, (n_runs,), and its levels.

    ordered: 2 * SHORTEST or more runs in the order of time.
    """
    logs = np.log(ordered["step_mean_seconds"].to_numpy(np.float64))
    cohorts = ordered["cohort"].to_numpy(np.str_)
    level = np.zeros(len(logs))
    for _ in range(ROUNDS):
        rest = logs - _usual(logs - level, cohorts)
        levels = segments(np.exp(rest), shortest=SHORTEST)
        level = np.concatenate([np.full(segment.end - segment.first, np.log(segment.level)) for segment in levels])
    return rest, levels


def _usual(logs: Floats, cohorts: NDArray[np.str_]) -> Floats:
    medians = pd.Series(logs).groupby(cohorts).transform("median")
    return np.asarray(medians, dtype=np.float64)


def _change(started_ns: NDArray[np.int64], before: Segment, after: Segment) -> LevelChange:
    runs = (before.end - before.first, after.end - after.first)
    return LevelChange(int(started_ns[after.first]), after.level / before.level, *runs)
