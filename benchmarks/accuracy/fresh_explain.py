"""The same table on runs that nobody has looked at: a validation plan of another seed, measured here and now.

Needs root and a quarter of an hour. FRESH=0 leaves it out; FRESH_SEED is the plan's seed, which must not be the one
that thresholds were chosen on (7); FRESH_STORE is a folder whose runs are used and the missing ones added.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.accuracy.lab_explain import ASKED, by_kind, by_size, by_step_time, explained_runs, figures, holds
from benchmarks.accuracy.row import Row
from crosswind.data.schema.errors import InvalidInputError, ProjectError
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.ingest.lab.campaign import Step, missing, position_in, run_plan
from crosswind.ingest.lab.hosts.hosts import remove_abandoned
from crosswind.ingest.lab.hosts.programs import require_lab
from crosswind.ingest.lab.plans.plan import SHARES, Plan
from crosswind.ingest.lab.plans.validation import VALIDATION_SEED, validation


def rows() -> list[Row]:
    """One row; none where the lab cannot run here or is not wanted, and why."""
    if os.environ.get("FRESH", "1") == "0":
        print("fresh runs: left out (FRESH=0)", flush=True)
        return []
    plan = validation(_seed())
    with _store() as store:
        try:
            measure(plan, store)
        except ProjectError as error:
            print(f"fresh runs: left out: {error}", flush=True)
            return []
        runs = [run for run in all_runs(store) if position_in(plan, run) is not None]
        cases = explained_runs(store, runs, splits=[name for name, _ in SHARES])
    ours = figures(cases)
    return [
        Row(
            task="fresh lab runs: causes named",
            split=f"{plan.name}: {len(cases)} runs of 3 cohorts, each against its cohort; none looked at before",
            rows=len(cases),
            figures=ours,
            asked=ASKED,
            holds=holds(ours),
            baselines={"by_step_time": by_step_time(cases)},
            note=f"{by_kind(cases)}; {by_size(cases)}",
        )
    ]


def measure(plan: Plan, store: Store) -> None:
    """Measures what of the plan is missing in the store. Raises: UnavailableError without root; as `run_plan`."""
    if not missing(plan, all_runs(store)):
        return
    require_lab()
    remove_abandoned()
    for problem in run_plan(plan, store, report=_report):
        print(f"problem: {problem}", flush=True)


def _report(step: Step) -> None:
    left = "" if step.seconds_left is None else f", {step.seconds_left / 60:.0f} min left"
    print(f"fresh runs: {step.done} of {step.total}{left}", flush=True)


def _seed() -> int:
    asked = os.environ.get("FRESH_SEED", str(VALIDATION_SEED))
    if not asked.isdecimal():
        raise InvalidInputError(f"FRESH_SEED {asked!r}: expected a whole number")
    return int(asked)


@contextmanager
def _store() -> Iterator[Store]:
    with TemporaryDirectory() as folder:
        home = Path(os.environ.get("FRESH_STORE") or Path(folder) / "store").absolute()
        with Store.open(home) as store:
            yield store
