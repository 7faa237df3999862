"""Outcomes of each run, computed from its steps."""

import json
import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from crosswind.data.catalog.runs import ANY_RUN, RunFilter
from crosswind.data.lake.steps_summary import time_of
from crosswind.data.schema.answers.runs import ListedRun, RunOutcome
from crosswind.data.schema.run import Run
from crosswind.data.schema.steps import COLLECTIVES, NOT_SEEN, PHASES
from crosswind.data.store.store import Store

WARM_UP_STEPS = 3  # the first steps allocate, compile and connect; they are measured but not compared
EVERY_RUN = 100_000
DIGITS = 12  # of outcomes: sums of several threads differ beyond them from one query to the next

_SUMMARY = """
with per_step as (
    select run_id, step, max(duration_seconds) as duration_seconds, {phase_means}
    from step where step >= ? and run_id in (select unnest(?)) group by run_id, step
)
select run_id, count(*) as steps, median(duration_seconds) as step_p50_seconds,
    quantile_cont(duration_seconds, 0.05) as step_p05_seconds,
    quantile_cont(duration_seconds, 0.95) as step_p95_seconds, avg(duration_seconds) as step_mean_seconds,
    stddev_samp(duration_seconds) / avg(duration_seconds) as step_cov_ratio, {phase_overall}
from per_step group by run_id
"""
_STEPS = "select * from step where run_id = ? order by step, rank"


def cohort_key(run: Run) -> str:
    """Names the runs that may be compared: one workload, configuration and scale on one system."""
    return json.dumps([run.system, run.workload, dict(run.configuration), run.world_size], sort_keys=True)


def summaries(store: Store, runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run in the order given: identity, times, and step outcomes (null where a run recorded no steps).

    Columns: run_id workload system cohort state world_size started_ns run_seconds steps step_p05_seconds
    step_p50_seconds step_p95_seconds step_mean_seconds step_cov_ratio and one `<phase>_seconds` a phase (mean over
    steps and ranks; null for `comm` if no wait for a collective was seen). A step's duration is that of its slowest
    rank; warm-up steps are left out.
    """
    rows = pd.DataFrame([_identity(run) for run in runs], columns=list(_identity_columns()), dtype=object)
    types = {"world_size": "Int64", "started_ns": "Int64", "run_seconds": "float64"}  # a float would round the time
    identity = rows.astype(types).infer_objects()
    outcome = store.lake.frame(_summary_sql(), [WARM_UP_STEPS, [run.run_id for run in runs]], within=time_of(runs))
    frame = identity.merge(outcome, on="run_id", how="left")
    unseen = [run.run_id for run in runs if run.tags.get(COLLECTIVES) == NOT_SEEN]
    frame.loc[frame["run_id"].isin(unseen), "comm_seconds"] = float("nan")
    return frame


def listed(run: Run) -> ListedRun:
    """Return the run as it is listed."""
    return ListedRun(**vars(run), run_seconds=run.seconds)


def outcomes(store: Store, runs: Sequence[Run]) -> tuple[RunOutcome, ...]:
    """Return the runs, in the order given, with the outcomes of their steps."""
    rows = summaries(store, runs).drop(columns=list(_identity_columns())).to_dict("records")
    return tuple(_outcome(run, row) for run, row in zip(runs, rows, strict=True))


def _outcome(run: Run, row: dict[Any, float]) -> RunOutcome:
    values: dict[str, Any] = {name: None if math.isnan(value) else round(value, DIGITS) for name, value in row.items()}
    values["steps"] = None if values["steps"] is None else int(values["steps"])
    return RunOutcome(**vars(listed(run)), cohort=cohort_key(run), **values)


def all_runs(store: Store, wanted: RunFilter = ANY_RUN, *, limit: int = EVERY_RUN) -> list[Run]:
    """Runs that match, oldest first; the newest `limit` of them."""
    with store.catalog.read() as session:
        return session.runs.find(wanted, limit=limit)[::-1]


def steps_of(store: Store, run_id: str) -> pd.DataFrame:
    """Every step of every rank of a run, in seconds, ordered by step and rank. Raises: NotFoundError."""
    with store.catalog.read() as session:
        run = session.runs.get(run_id)
    return store.lake.frame(_STEPS, [run_id], within=time_of([run]))


def _summary_sql() -> str:
    means = ", ".join(f"avg({phase}_seconds) as {phase}_seconds" for phase in PHASES)
    return _SUMMARY.format(phase_means=means, phase_overall=means)


def _identity_columns() -> tuple[str, ...]:
    return ("run_id", "workload", "system", "cohort", "state", "world_size", "started_ns", "run_seconds")


def _identity(run: Run) -> tuple[object, ...]:
    state = str(run.state)
    return (run.run_id, run.workload, run.system, cohort_key(run), state, run.world_size, run.started_ns, run.seconds)
