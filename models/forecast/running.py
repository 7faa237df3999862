"""The rest of a stored run in progress, from its steps so far and from earlier runs of its workload."""

from collections.abc import Sequence

import numpy as np

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.weather import Remaining
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.question import STEPS_MAX
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store
from crosswind.models.forecast.in_run import InRunForecaster
from crosswind.models.forecast.past_runs import PastRun
from crosswind.models.forecast.stored_runs import past_runs, steps_so_far
from crosswind.models.next_run.quantiles import quantiles

EARLIER_RUNS = 100  # of the workload on the system, the newest
STEPS = "steps"  # the parameter for the number of steps


def remaining(store: Store, run_id: str, *, total_steps: int | None = None) -> Remaining:
    """Return the rest of a run; `total_steps` None means its parameter `steps`, else as many as its cohort's runs had.

    Seconds are those of its steps, the slowest rank's. Raises: NotFoundError; InvalidInputError where no step is
    recorded, nothing tells how many there will be, or too few runs came before.
    """
    with store.catalog.read() as session:
        run = session.runs.get(run_id)
    seen = steps_so_far(store, run)
    if len(seen.seconds) == 0:
        raise InvalidInputError(f"run {run_id}: no step is recorded yet, expected one at least")
    past = past_runs(store, _before(store, run))
    cohort = [earlier for earlier in past if earlier.cohort == seen.cohort]
    total = total_steps if total_steps is not None else _steps_of(run) or _usual(run_id, cohort)
    done = len(seen.seconds)
    if not done <= total <= STEPS_MAX:
        raise InvalidInputError(f"total_steps {total}: expected {done}, as many as are done, to {STEPS_MAX}")
    in_progress = InRunForecaster().fit(past).start(seen.cohort, max(total, 2))
    in_progress.observe(seen.seconds, seen.signals)
    if total < 2:
        in_progress.total_steps = total  # a forecaster asks for two
    return Remaining(
        *(run_id, done, total, float(seen.seconds.sum())),
        remaining=quantiles(in_progress.remaining()),
        total=quantiles(in_progress.total()),
        next_step=quantiles(in_progress.next_steps()) if done < total else None,
        changed_at=tuple(in_progress.changes),
        earlier_runs=len(past),
        cohort_runs=len(cohort),
    )


def _before(store: Store, run: Run) -> list[Run]:
    """The newest runs that began before this one, seen or not; without a known start, the newest others."""
    wanted = RunFilter(workload=run.workload, system=run.system, state=RunState.COMPLETED)
    before = None if run.started_ns is None else (run.started_ns, run.run_id)
    with store.whole.catalog.read() as session:
        runs = session.runs.find(wanted, before=before, limit=EARLIER_RUNS)
    return [earlier for earlier in runs[::-1] if earlier.run_id != run.run_id]


def _steps_of(run: Run) -> int | None:
    value = run.configuration.get(STEPS)
    return int(value) if isinstance(value, int | float) and value >= 1 else None


def _usual(run_id: str, cohort: Sequence[PastRun]) -> int:
    if not cohort:
        raise InvalidInputError(f"run {run_id}: nothing tells how many steps it will have, expected total_steps")
    return int(np.median([len(run.seconds) for run in cohort]))
