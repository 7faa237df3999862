"""Regressions: when a workload's runs became slower or faster for good, and what else changed just then."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.stragglers import Regression, Regressions
from crosswind.data.schema.answers.weather import LevelChange
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.question import REGRESSION_RUNS
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.features import EVERY_RUN, all_runs, summaries
from crosswind.data.store.store import Store
from crosswind.models.forecast.level_changes import SHORTEST, level_changes
from crosswind.models.stragglers.coincidences import suspects


def regressions(
    store: Store,
    system: str | None = None,
    workload: str | None = None,
    *,
    runs: int = REGRESSION_RUNS,
    since_ns: int | None = None,
) -> Regressions:
    """Changes of the newest `runs` completed runs' time, each workload of each system by itself.

    since_ns: of those that began then or later.
    Raises: InvalidInputError for fewer than one run or more than EVERY_RUN; MalformedError.
    """
    if not 1 <= runs <= EVERY_RUN:
        raise InvalidInputError(f"runs {runs}: expected 1 to {EVERY_RUN}")
    wanted = RunFilter(system=system, workload=workload, state=RunState.COMPLETED, since_ns=since_ns)
    return regressions_of(store, all_runs(store, wanted, limit=runs))


def regressions_of(store: Store, runs: Sequence[Run]) -> Regressions:
    """Changes among these runs, in any order. Raises: MalformedError."""
    table = known_times(summaries(store, runs)) if runs else pd.DataFrame()
    by_id = {run.run_id: run for run in runs}
    every_change, too_few = list[Regression](), list[str]()
    groups = list(table.groupby(["system", "workload"])) if len(table) else []
    for (system, workload), rows in groups:
        if len(rows) < 2 * SHORTEST:
            too_few.append(f"{system}/{workload}")
        every_change += _of_workload(rows, by_id)
    changes = tuple(sorted(every_change, key=lambda change: -change.since_ns))
    return Regressions(len(runs), len(groups), changes, tuple(too_few), _warnings(len(runs), len(groups), too_few))


def known_times(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of `summaries` of known time: mean step seconds where all of a cohort have steps, else run seconds."""
    started = table[table["started_ns"].notna()].astype({"started_ns": "int64"})
    steps = started["step_mean_seconds"].where(started["step_mean_seconds"] > 0)
    all_have_steps = steps.notna().groupby(started["cohort"]).transform("all")
    seconds = steps.where(all_have_steps, started["run_seconds"])
    whole = started.assign(step_mean_seconds=seconds.astype("float64"))
    is_known = np.isfinite(whole["step_mean_seconds"]) & (whole["step_mean_seconds"] > 0)
    timed: pd.DataFrame = whole.loc[is_known]
    return timed


def _of_workload(rows: pd.DataFrame, by_id: dict[str, Run]) -> list[Regression]:
    ordered = rows.sort_values("started_ns", kind="stable")
    changes = level_changes(ordered)
    starts = ordered["started_ns"].to_numpy(np.int64)
    bounds = [0, *(int(np.searchsorted(starts, change.since_ns)) for change in changes), len(ordered)]
    runs = [by_id[run_id] for run_id in ordered["run_id"]]
    sides = [runs[first:end] for first, end in pairwise(bounds)]
    return [_regression(change, *side) for change, side in zip(changes, pairwise(sides), strict=True)]


def _regression(change: LevelChange, before: Sequence[Run], since: Sequence[Run]) -> Regression:
    run = since[0]
    counts = (change.runs_before, change.runs_since)
    return Regression(run.system, run.workload, change.since_ns, change.ratio, *counts, tuple(suspects(before, since)))


def _warnings(runs: int, workloads: int, too_few: Sequence[str]) -> tuple[str, ...]:
    if not runs:
        return ("no completed run is stored",)
    if len(too_few) == workloads:
        return (f"no workload has {2 * SHORTEST} completed runs whose time is known, so changes cannot be detected",)
    return ()
