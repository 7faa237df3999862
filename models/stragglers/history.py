"""A workload's run times over its cohorts' usual ones, and their levels over time."""

from dataclasses import dataclass

import numpy as np

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.question import REGRESSION_RUNS
from crosswind.data.schema.run import RunState
from crosswind.data.store.features import all_runs, summaries
from crosswind.data.store.store import Store
from crosswind.models.forecast.level_changes import SHORTEST, levelled
from crosswind.models.stragglers.regressions import known_times


@dataclass(frozen=True)
class RunTime:
    """A run's time over the usual one of its cohort."""

    run_id: str
    started_ns: int
    ratio: float


@dataclass(frozen=True)
class Level:
    """The level that runs kept in the median, from the first one's start to the last one's."""

    since_ns: int
    until_ns: int
    ratio: float
    runs: int


@dataclass(frozen=True)
class History:
    """Runs and levels, oldest first; no levels where fewer than 2 * SHORTEST runs are known."""

    system: str
    workload: str
    runs: tuple[RunTime, ...]
    levels: tuple[Level, ...]


def history(
    store: Store, system: str, workload: str, *, runs: int = REGRESSION_RUNS, since_ns: int | None = None
) -> History:
    """History of the newest completed `runs` of a workload on a system, of those that began at `since_ns` or later.

    Raises: MalformedError for a damaged file.
    """
    wanted = RunFilter(system=system, workload=workload, state=RunState.COMPLETED, since_ns=since_ns)
    newest = all_runs(store, wanted, limit=runs)
    table = known_times(summaries(store, newest)).sort_values("started_ns", kind="stable")
    if len(table) < 2 * SHORTEST:
        return History(system, workload, (), ())
    logs, segments = levelled(table)
    starts = table["started_ns"].tolist()
    ratios = np.exp(logs).tolist()
    times = tuple(map(RunTime, table["run_id"], starts, ratios))
    levels = (Level(starts[e.first], starts[e.end - 1], float(e.level), e.end - e.first) for e in segments)
    return History(system, workload, times, tuple(levels))
