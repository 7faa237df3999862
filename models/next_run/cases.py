"""Earlier runs as the rows that a model of the next one learns from."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.job import Job
from crosswind.data.schema.run import Run, RunState, cohort_key
from crosswind.data.store.features import all_runs, summaries
from crosswind.data.store.jobs import JOB
from crosswind.data.store.run_facts import facts_of_runs
from crosswind.data.store.run_tags import node_count_of
from crosswind.data.store.store import Store
from crosswind.models.conditions.conditions import conditions_before
from crosswind.models.conditions.moment import Moment
from crosswind.models.energy.measured import measured_energy
from crosswind.models.energy.power_limit import limit_name
from crosswind.models.next_run.cohort_store import POWER_COLUMNS
from crosswind.models.spread import PREDICTIVE

RUNS_MAX = 20_000  # the newest; older ones say little about the next
CONDITIONS_MAX = 4000  # twice as many as spreads are learned from
COLUMNS = (
    *("run_id", "cohort", "workload", "system", "world_size", "node_count", "nodes", "configuration"),
    *("facts", "started_ns", "ended_ns", "seconds"),
)


def cases(store: Store, outcome: Outcome, *, workload: str | None = None, limit: int = RUNS_MAX) -> pd.DataFrame:
    """Completed runs, or jobs, with this outcome, oldest first; columns COLUMNS, times in ns UTC.

    Where runs were under a power limit, there are POWER_COLUMNS too.
    A job's workload is its name, and its scale its number of nodes, for its number of ranks is unknown.
    """
    if outcome is Outcome.JOB:
        return _of_jobs(store, workload, limit)
    runs = comparable_runs(store, RunFilter(workload=workload, state=RunState.COMPLETED), limit=limit)
    rows = of_runs(runs, facts_of_runs(store, runs), outcomes_of(store, outcome, runs))
    return valid(rows.assign(**_powers(store, runs)))


def comparable_runs(store: Store, wanted: RunFilter, *, limit: int) -> list[Run]:
    """Return the newest runs that match and whose ranks and start are recorded, oldest first."""
    runs = all_runs(store, wanted, limit=limit)
    return [run for run in runs if run.world_size is not None and run.started_ns is not None]


def outcomes_of(store: Store, outcome: Outcome, runs: Sequence[Run]) -> "pd.Series[float]":
    """Return the seconds of each run, or of its usual step; NaN where it has none."""
    seconds = summaries(store, runs)[outcome] if outcome is Outcome.STEP else [run.seconds for run in runs]
    return pd.Series(seconds, dtype="float64")


def of_runs(runs: Sequence[Run], facts: Sequence[Facts], seconds: "pd.Series[float]") -> pd.DataFrame:
    """Return one row a run, columns COLUMNS."""
    rows = pd.DataFrame(map(_case, runs, facts), columns=list(COLUMNS[:-1]))
    return rows.assign(seconds=seconds)


def _powers(store: Store, runs: Sequence[Run]) -> dict[str, list[Any]]:
    """Columns of the power of runs under a limit, whose effect on time depends on it; none without such runs.

    Samples that are damaged give no power; whoever asks for energy is warned of them.
    """
    limited = [run for run in runs if limit_name(run.configuration)]
    if not limited:
        return {}
    try:
        measured = measured_energy(store, limited)
    except MalformedError:
        return {}
    powers = [measured.get(run.run_id) for run in runs]
    watts = [math.nan if power is None else power.node_watts for power in powers]
    scopes = ["" if power is None else str(power.scope) for power in powers]
    return dict(zip(POWER_COLUMNS, (watts, scopes), strict=True))


def together(some: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """The cases of both, each once, in the order of time."""
    every = pd.concat([some, others], ignore_index=True)
    return valid(every.drop_duplicates(["system", "run_id"], ignore_index=True))  # two systems may count jobs alike


def conditions_of(store: Store, outcome: Outcome, rows: pd.DataFrame) -> pd.DataFrame | None:
    """Return the conditions before each of these runs began, one row a run; None for jobs.

    Those of runs older than the newest CONDITIONS_MAX are unknown. Without an agent's samples, only the neighbours are
    known, from the catalog.
    """
    if outcome is Outcome.JOB or rows.empty:
        return None
    newest = rows[-CONDITIONS_MAX:]
    columns = zip(newest["started_ns"], newest["nodes"], newest["system"], newest["run_id"], strict=True)
    moments = [Moment(int(began), tuple(nodes), str(system), str(run_id)) for began, nodes, system, run_id in columns]
    conditions = conditions_before(store, moments, names=PREDICTIVE).set_axis(newest.index)
    return conditions.reindex(rows.index)


def jobs_revision(store: Store) -> tuple[int, int]:
    """Return the number of job records and the time of the last one: both change only when a record arrives."""
    if JOB.name not in store.lake.sets():
        return 0, 0
    row = store.lake.frame("select count(*) as accounts, max(ts_ns) as newest_ns from job").iloc[0]
    return int(row.accounts), int(row.newest_ns)


def finest_outcome(store: Store, workload: str, system: str) -> Outcome:
    """The finest outcome recorded of the newest runs of a workload, or of jobs where no run is known.

    For an unknown workload it is the step time, the only outcome that formulas give.
    """
    newest = all_runs(store, RunFilter(workload=workload, state=RunState.COMPLETED), limit=20)
    here = [run for run in newest if run.system == system] or newest
    if here:
        return Outcome.STEP if _is_any_timed(store, here) else Outcome.RUN
    return Outcome.JOB if store.jobs.of_name(workload, system=None, limit=1) else Outcome.STEP


def _is_any_timed(store: Store, runs: Sequence[Run]) -> bool:
    """Return whether any of the runs has steps, as was stored with their verdicts or else as the lake has it."""
    with store.catalog.read() as session:
        timed = session.verdicts.is_any_timed([run.run_id for run in runs])
    return bool(summaries(store, runs)[Outcome.STEP].notna().any()) if timed is None else timed


def _case(run: Run, facts: Facts) -> tuple[object, ...]:
    count = node_count_of(run) or facts.node_count
    identity = (run.run_id, cohort_key(run), run.workload, run.system, run.world_size, count, run.nodes)
    return (*identity, dict(run.configuration), facts, run.started_ns, run.ended_ns)


def _of_jobs(store: Store, workload: str | None, limit: int) -> pd.DataFrame:
    jobs = [job for job in _jobs(store, workload, limit) if job.state == "COMPLETED" and job.node_count]
    rows = pd.DataFrame([_job_case(job) for job in jobs], columns=list(COLUMNS[:-1]))
    return valid(rows.assign(seconds=pd.Series([job.seconds for job in jobs], dtype="float64")))


def _jobs(store: Store, workload: str | None, limit: int) -> Sequence[Job]:
    return store.jobs.of_name(workload, system=None, limit=limit) if workload else store.jobs.find(limit=limit)[::-1]


def _job_case(job: Job) -> tuple[object, ...]:
    as_run = Run(job.job_id, job.name, job.system, RunState.COMPLETED, world_size=job.node_count)
    identity = (job.job_id, cohort_key(as_run), job.name, job.system, job.node_count, job.node_count, job.nodes)
    return (*identity, {}, job.facts, job.started_ns, job.ended_ns)


def valid(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with a positive outcome, in the order of time."""
    kept = rows[(rows["seconds"] > 0) & rows["started_ns"].notna()]
    order = kept["started_ns"].astype("int64").sort_values(kind="stable").index
    return kept.loc[order].reset_index(drop=True)
