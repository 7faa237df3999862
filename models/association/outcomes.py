"""The excess of each run over its cohort's usual level."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.features import EVERY_RUN, all_runs, summaries
from crosswind.data.store.store import Store
from crosswind.models.association.design import Ints
from crosswind.models.spread.level import OWN_RUNS_MIN, level_of


@dataclass(frozen=True)
class Outcomes:
    """Comparable runs, oldest first: log excess over the level of their cohort, and the cohort's number, (n,) each.

    `looked_at` counts the completed runs among which they were chosen; cohorts with fewer than four are left out.
    """

    system: str
    workload: str | None
    runs: tuple[Run, ...]
    log_excess: Floats
    cohort: Ints
    looked_at: int

    @property
    def started_ns(self) -> Ints:
        """The times at which the runs began, (n,)."""
        return np.array([run.started_ns for run in self.runs], dtype=np.int64)

    @property
    def usual_seconds(self) -> Floats:
        """Seconds of the runs without their excess, (n,)."""
        seconds = np.array([run.seconds for run in self.runs], dtype=np.float64)
        usual: Floats = seconds * np.exp(-self.log_excess)
        return usual

    def rows(self, kept: Ints) -> "Outcomes":
        """The runs at these places."""
        runs = tuple(self.runs[place] for place in kept)
        return Outcomes(self.system, self.workload, runs, self.log_excess[kept], self.cohort[kept], self.looked_at)


def outcomes(
    store: Store,
    workload: str | None = None,
    system: str | None = None,
    *,
    since_ns: int | None = None,
    limit: int = EVERY_RUN,
) -> Outcomes:
    """Outcomes of the newest completed runs of a workload, or of all, on a system; None is that of most of them.

    since_ns: of those that began then or later.

    A run's time is its mean step without warm-up where all runs of its cohort recorded steps, so that runs of more
    steps are no slower; else its run time. Raises: InvalidInputError where no such run is stored.
    """
    where = system if system is not None else usual_system(store, workload)
    wanted = RunFilter(workload, where, RunState.COMPLETED, since_ns=since_ns)
    runs = _placed(all_runs(store, wanted, limit=limit))
    if not runs and since_ns is not None:
        raise InvalidInputError(f"since: no run has completed on system {where!r:.80} that began then or later")
    if not runs:
        raise InvalidInputError(_nothing(store, workload, where))
    table = _excess(summaries(store, runs))
    kept = np.flatnonzero(table["log_excess"].notna())
    cohort = pd.factorize(table["cohort"])[0].astype(np.int64)
    compared = Outcomes(where, workload, tuple(runs), table["log_excess"].to_numpy(np.float64), cohort, len(runs))
    return compared.rows(kept)


def _excess(table: pd.DataFrame) -> pd.DataFrame:
    """The table with `log_excess`, NaN for runs without a cohort to compare with."""
    steps = table["step_mean_seconds"].where(table["step_mean_seconds"] > 0)
    has_steps = steps.notna().groupby(table["cohort"]).transform("all")
    logs = pd.Series(np.log(steps.where(has_steps, table["run_seconds"]).to_numpy(np.float64)), index=table.index)
    by_cohort = logs.groupby(table["cohort"])
    levels = by_cohort.transform(lambda own: level_of(own.to_numpy()))
    return table.assign(log_excess=(logs - levels).where(by_cohort.transform("size") >= OWN_RUNS_MIN))


def _placed(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.seconds is not None and run.seconds > 0]


def usual_system(store: Store, workload: str | None = None) -> str:
    """The system of most of the newest completed runs, of a workload if it has any.

    Raises: InvalidInputError where no completed run is stored.
    """
    with store.catalog.read() as session:
        of_all = RunFilter(state=RunState.COMPLETED)
        system = session.runs.usual_system(replace(of_all, workload=workload)) or session.runs.usual_system(of_all)
    if system is None:
        raise InvalidInputError("system None: no completed run is stored, expected one at least")
    return system


def _nothing(store: Store, workload: str | None, system: str) -> str:
    runs = all_runs(store, RunFilter(state=RunState.COMPLETED))
    here = sorted({run.workload for run in runs if run.system == system})
    if here:
        return f"workload {workload!r}: no run of it has completed on system {system!r}, known are {', '.join(here)}"
    systems = ", ".join(sorted({run.system for run in runs})) or "none"
    return f"system {system!r}: no completed run is stored, known are {systems}"
