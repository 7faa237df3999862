"""Computing of features and verdicts that are due, so that pages and explanations find them stored."""

import logging
import time
from collections.abc import Callable, Sequence

from crosswind.data.files import NoLocksError, lock_file, take_lock
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.run import Run
from crosswind.data.store.store import Store
from crosswind.models.explain.explain import explain_runs

AT_ONCE = 50  # runs that are explained together
LOCK = "verdicts.lock"

log = logging.getLogger(__name__)


def compute_due(store: Store, *, seconds: float, is_over: Callable[[], bool] = lambda: False) -> int:
    """Compute what is due, the newest runs first, for so long at most. Return how many runs were explained.

    One process of a store's folder does it at a time; where the file system keeps no locks, each does.
    """
    until, tried = time.monotonic() + seconds, set[str]()
    with lock_file(store.home / LOCK) as fd:
        if not _is_alone(fd):
            return 0
        while not is_over() and time.monotonic() < until:
            runs = [run for run in _due(store) if run.run_id not in tried]
            if not runs:  # none, or none whose verdict could be stored
                break
            tried.update(run.run_id for run in runs)
            _explain(store, runs)
    return len(tried)


def _is_alone(fd: int) -> bool:
    try:
        return take_lock(fd)
    except NoLocksError:
        return True


def _due(store: Store) -> list[Run]:
    """Return runs whose features are due and runs whose verdict is, so that neither waits for the others' end."""
    with store.catalog.read() as session:
        run_ids = session.verdicts.due_features(AT_ONCE) + session.verdicts.due_verdicts(AT_ONCE)
        return session.runs.some(run_ids)


def _explain(store: Store, runs: Sequence[Run]) -> None:
    """Explain runs together or, where a file of one is damaged, each by itself; those that cannot be are given up."""
    try:
        explain_runs(store, runs)
    except MalformedError as error:
        if len(runs) > 1:
            for run in runs:
                _explain(store, [run])
            return
        log.warning("no verdict on run %s: %s", runs[0].run_id, error)
        with store.catalog.write() as session:
            session.verdicts.give_up(runs[0].run_id)
