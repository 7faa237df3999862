"""Campaigns: measuring the runs of a plan that a store does not have yet."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.ingest.lab.folders import Folders
from crosswind.ingest.lab.hosts.machine_lock import alone
from crosswind.ingest.lab.laboratory import laboratory
from crosswind.ingest.lab.plans.plan import Plan, PlannedRun
from crosswind.ingest.load.load import load_spool

STORED_EVERY = 20  # runs: storing disturbs none of them, but takes a while
ENDED = (RunState.COMPLETED, RunState.FAILED)


@dataclass(frozen=True)
class Step:
    """The progress of the plan; `seconds_left` is None before the first run has ended."""

    done: int
    total: int
    planned: PlannedRun
    seconds_left: float | None


def run_plan(
    plan: Plan, store: Store, *, only: int | None = None, report: Callable[[Step], None] = lambda _: None
) -> list[str]:
    """Measure missing runs, at most `only`, and store them. Return the problems of storing.

    May be interrupted at any time and called again.
    Raises: FaultRemainsError, UnavailableError; ConflictError when another laboratory is at work on this machine.
    """
    with alone():
        return _run_plan(plan, store, only, report)


def _run_plan(plan: Plan, store: Store, only: int | None, report: Callable[[Step], None]) -> list[str]:
    folders = Folders(store.home)
    problems = store_spools(store, folders.spools)
    left = missing(plan, all_runs(store))[:only]
    if not left:
        return problems
    try:
        problems += _measure_all(left, plan.name, store, report)
    except UnavailableError:
        store_spools(store, folders.spools)  # the runs measured until then, and the failed one
        raise
    return problems + store_spools(store, folders.spools)


def _measure_all(left: Sequence[PlannedRun], plan: str, store: Store, report: Callable[[Step], None]) -> list[str]:
    """Measure these runs, and store them from time to time. Return the problems of storing."""
    problems: list[str] = []
    folders = Folders(store.home)
    began = time.monotonic()
    with laboratory(folders) as lab:
        for done, planned in enumerate(left):
            spent = time.monotonic() - began
            report(Step(done, len(left), planned, spent / done * (len(left) - done) if done else None))
            lab.measure(planned, plan)
            if done % STORED_EVERY == STORED_EVERY - 1:
                problems += store_spools(store, folders.spools)
    return problems


def missing(plan: Plan, stored: Iterable[Run]) -> list[PlannedRun]:
    """Return the planned runs that have no ended run in the store."""
    there = {position for run in stored if (position := position_in(plan, run)) is not None and run.state in ENDED}
    return [planned for planned in plan.runs if planned.number not in there]


def position_in(plan: Plan, run: Run) -> int | None:
    """Return this run's position in the plan; None when it is none of the plan's runs."""
    position = run.tags.get("position", "")
    return int(position) if run.tags.get("plan") == plan.name and position.isdecimal() else None


def store_spools(store: Store, spools: Path) -> list[str]:
    """Store the sealed segments of agents, ranks and the lab. Return the problems. Raises: UnavailableError."""
    folders = sorted(path for path in spools.iterdir() if path.is_dir()) if spools.is_dir() else []
    return [problem for folder in folders for problem in load_spool(store, folder).problems]
