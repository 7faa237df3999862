"""A plan from its first run to its last, into a store; what is there already is not measured again."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.ingest.lab.folders import Folders
from crosswind.ingest.lab.laboratory import laboratory
from crosswind.ingest.lab.machine_lock import alone
from crosswind.ingest.lab.plan import Plan, PlannedRun
from crosswind.ingest.load.load import load_spool

STORED_EVERY = 20  # runs: storing competes with nobody, but takes a while
ENDED = (RunState.COMPLETED, RunState.FAILED)


@dataclass(frozen=True)
class Step:
    """The progress of the plan; `seconds_left` None as long as nobody can tell."""

    done: int
    total: int
    planned: PlannedRun
    seconds_left: float | None


def run_plan(
    plan: Plan, store: Store, *, only: int | None = None, tell: Callable[[Step], None] = lambda _: None
) -> list[str]:
    """Measures what is missing, at most `only` runs, and stores it; what went wrong in storing.

    May be interrupted at any time and called again.
    Raises: FaultRemainsError, UnavailableError; ConflictError when another laboratory is at work on this machine.
    """
    with alone():
        return _run_plan(plan, store, only, tell)


def _run_plan(plan: Plan, store: Store, only: int | None, tell: Callable[[Step], None]) -> list[str]:
    folders = Folders(store.home)
    problems = store_spools(store, folders.spools)
    left = missing(plan, all_runs(store))[:only]
    if not left:
        return problems
    try:
        problems += _measure_all(left, plan.name, store, tell)
    except UnavailableError:
        store_spools(store, folders.spools)  # what was measured until then, the run that failed, too
        raise
    return problems + store_spools(store, folders.spools)


def _measure_all(left: Sequence[PlannedRun], plan: str, store: Store, tell: Callable[[Step], None]) -> list[str]:
    """Measures these runs and now and then stores what is there; what went wrong in storing."""
    problems: list[str] = []
    folders = Folders(store.home)
    began = time.monotonic()
    with laboratory(folders) as lab:
        for done, planned in enumerate(left):
            spent = time.monotonic() - began
            tell(Step(done, len(left), planned, spent / done * (len(left) - done) if done else None))
            lab.measure(planned, plan)
            if done % STORED_EVERY == STORED_EVERY - 1:
                problems += store_spools(store, folders.spools)
    return problems


def missing(plan: Plan, stored: Iterable[Run]) -> list[PlannedRun]:
    """The planned runs that have no ended run in the store."""
    there = {position for run in stored if (position := position_in(plan, run)) is not None and run.state in ENDED}
    return [planned for planned in plan.runs if planned.number not in there]


def position_in(plan: Plan, run: Run) -> int | None:
    """Return this run's position in the plan; None when it is none of the plan's runs."""
    position = run.tags.get("position", "")
    return int(position) if run.tags.get("plan") == plan.name and position.isdecimal() else None


def store_spools(store: Store, spools: Path) -> list[str]:
    """Stores what agents, ranks and the lab have sealed; what went wrong. Raises: UnavailableError."""
    folders = sorted(path for path in spools.iterdir() if path.is_dir()) if spools.is_dir() else []
    return [problem for folder in folders for problem in load_spool(store, folder).problems]
