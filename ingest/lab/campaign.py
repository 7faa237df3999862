"""A plan from its first run to its last, into a store; what is there already is not measured again."""

import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.errors import ConflictError
from crosswind.data.features import all_runs
from crosswind.data.run import Run, RunState
from crosswind.data.store import Store
from crosswind.ingest.lab.laboratory import Folders, laboratory
from crosswind.ingest.lab.plan import Plan, PlannedRun
from crosswind.ingest.load import load_spool

STORED_EVERY = 20  # runs: storing competes with nobody, but takes a while
ENDED = (RunState.COMPLETED, RunState.FAILED)


@dataclass(frozen=True)
class Step:
    """How far the plan has come; `seconds_left` None as long as nobody can tell."""

    done: int
    total: int
    planned: PlannedRun
    seconds_left: float | None


def run_plan(
    plan: Plan, store: Store, *, only: int | None = None, tell: Callable[[Step], None] = lambda _: None
) -> list[str]:
    """Measures what is missing, at most `only` runs, and stores it; what went wrong in storing.

    May be interrupted at any time and called again.
    Raises: UnavailableError; ConflictError when another laboratory measures into the store.
    """
    with alone_in(store.home):
        return _run_plan(plan, store, only, tell)


def _run_plan(plan: Plan, store: Store, only: int | None, tell: Callable[[Step], None]) -> list[str]:
    folders = Folders(store.home / "spools", store.home / "scratch")
    problems = store_spools(store, folders.spools)
    left = missing(plan, all_runs(store))[:only]
    if not left:
        return problems
    began = time.monotonic()
    with laboratory(folders) as lab:
        for done, planned in enumerate(left):
            spent = time.monotonic() - began
            tell(Step(done, len(left), planned, spent / done * (len(left) - done) if done else None))
            lab.measure(planned, plan.name)
            if done % STORED_EVERY == STORED_EVERY - 1:
                problems += store_spools(store, folders.spools)
    return problems + store_spools(store, folders.spools)


@contextmanager
def alone_in(home: Path) -> Iterator[None]:
    """Holds the lock of the store's one laboratory. Raises: ConflictError."""
    fd = os.open(home / "lab.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o640)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise ConflictError(
            f"{home}: another laboratory is at work there; wait for it, or name another --store"
        ) from None
    finally:
        os.close(fd)


def missing(plan: Plan, stored: Iterable[Run]) -> list[PlannedRun]:
    """The planned runs that have no ended run in the store."""
    there = {position for run in stored if (position := position_in(plan, run)) is not None and run.state in ENDED}
    return [planned for planned in plan.runs if planned.number not in there]


def position_in(plan: Plan, run: Run) -> int | None:
    """Which of the plan's runs this one is; None when of none."""
    position = run.tags.get("position", "")
    return int(position) if run.tags.get("plan") == plan.name and position.isdecimal() else None


def store_spools(store: Store, spools: Path) -> list[str]:
    """Stores what agents, ranks and the lab have sealed; what went wrong. Raises: UnavailableError."""
    folders = sorted(path for path in spools.iterdir() if path.is_dir()) if spools.is_dir() else []
    return [problem for folder in folders for problem in load_spool(store, folder).problems]
