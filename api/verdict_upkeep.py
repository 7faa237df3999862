"""Verdicts of a server's store: those that are due are computed in the background."""

import logging
from contextlib import AbstractContextManager

from crosswind.api.thread_beside import Ending, WarnOnce, thread_beside
from crosswind.data.catalog.database import NO_ANSWER
from crosswind.data.schema.errors import ProjectError
from crosswind.data.store.store import Store
from crosswind.models.explain.upkeep import compute_due

LOOK_SECONDS = 2.0  # between looks at what is due
WORK_SECONDS = 60.0  # after which it looks up
END_SECONDS = 10.0  # for the piece of work in progress: a thread that is cut off in native code aborts the process

_log = logging.getLogger("crosswind.verdicts")


def verdict_upkeep(store: Store, look_seconds: float = LOOK_SECONDS) -> AbstractContextManager[Ending]:
    """Compute verdicts within the context; at its end what is due is left to the next server."""
    return thread_beside(lambda ending: _keep(store, look_seconds, ending), "verdicts", end_seconds=END_SECONDS)


def _keep(store: Store, look_seconds: float, ending: Ending) -> None:
    warn = WarnOnce(_log)
    while not ending.wait(look_seconds):
        try:
            compute_due(store, seconds=WORK_SECONDS, is_over=ending.is_set)
        except (ProjectError, OSError, *NO_ANSWER) as error:
            warn(error)
        except Exception:  # noqa: BLE001 - the next time is another try
            _log.exception("computing verdicts failed")
