"""Computing of features and verdicts that are due, so that pages and explanations find them stored."""

import logging
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from crosswind.data.files import NoLocksError, lock_file, take_lock
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.run import Run
from crosswind.data.store.store import Store

AT_ONCE = 10  # runs that are explained together
LOCK = "verdicts.lock"

log = logging.getLogger(__name__)


def compute_due(store: Store, *, seconds: float, is_over: Callable[[], bool] = lambda: False) -> int:
    """Compute what is due, the newest runs first, for so long at most. Return how many runs were explained.

    One process of a PostgreSQL catalog, and of a store's folder, does it at a time; without locks, each does.
    """
    until, tried = time.monotonic() + seconds, set[str]()

    def between() -> None:
        if is_over():
            raise _OverError

    with store.catalog.alone("verdicts") as is_ours, lock_file(store.home / LOCK) as fd, suppress(_OverError):
        if not (is_ours and _is_alone(fd)):
            return 0
        while time.monotonic() < until:
            runs = _due(store, tried)
            if not runs:  # none, or none whose verdict could be stored
                break
            tried.update(run.run_id for run in runs)
            _explain(store, runs, between)
    return len(tried)


class _OverError(Exception):
    """The work is to end."""


def _is_alone(fd: int) -> bool:
    try:
        return take_lock(fd)
    except NoLocksError:
        return True


def _due(store: Store, tried: Collection[str]) -> list[Run]:
    """Return a run whose features are due, one whose verdict is, and with each the runs near it that are due, too."""
    with store.catalog.read() as session:
        verdicts = session.verdicts
        firsts = [
            next((run_id for run_id in due if run_id not in tried), None)
            for due in (verdicts.due_features(AT_ONCE), verdicts.due_verdicts(AT_ONCE))
        ]
        runs = session.runs.some([run_id for run_id in firsts if run_id is not None])
        near = {run_id for run in runs for run_id in session.runs.near(run, limit=AT_ONCE)}
        return session.runs.some({run.run_id for run in runs} | verdicts.due_among(near) - set(tried))


def _explain(store: Store, runs: Sequence[Run], between: Callable[[], None]) -> None:
    """Explain runs together or, where a file of one is damaged, each by itself; those that cannot be are given up."""
    from crosswind.models.explain.explain import explain_runs  # noqa: PLC0415 - heavy, and often nothing is due

    try:
        explain_runs(store, runs, between=between, with_peers=True)
    except MalformedError as error:
        if len(runs) > 1:
            for run in runs:
                _explain(store, [run], between)
            return
        log.warning("no verdict on run %s: %s", runs[0].run_id, error)
        with store.catalog.write() as session:
            session.verdicts.give_up(runs[0].run_id)
