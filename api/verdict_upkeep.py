"""Verdicts of a server's store: those that are due are computed in the background."""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from crosswind.data.catalog.database import NO_ANSWER
from crosswind.data.schema.errors import ProjectError
from crosswind.data.store.store import Store
from crosswind.models.explain.upkeep import compute_due

LOOK_SECONDS = 2.0  # between looks at what is due
WORK_SECONDS = 60.0  # after which it looks up
NICE = 10  # answers to requests go first
END_SECONDS = 10.0  # for the piece of work in progress: a thread that is cut off in native code aborts the process

_log = logging.getLogger("crosswind.verdicts")


@contextmanager
def verdict_upkeep(store: Store, look_seconds: float = LOOK_SECONDS) -> Iterator[None]:
    """Compute verdicts within the context; at its end what is due is left to the next server."""
    ending = threading.Event()
    thread = threading.Thread(target=_keep, args=(store, look_seconds, ending), name="verdicts", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join(END_SECONDS)


def _keep(store: Store, look_seconds: float, ending: threading.Event) -> None:
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
    logged: set[str] = set()
    while not ending.wait(look_seconds):
        try:
            compute_due(store, seconds=WORK_SECONDS, is_over=ending.is_set)
        except (ProjectError, OSError, *NO_ANSWER) as error:
            if str(error) not in logged:  # once, not every time
                logged.add(str(error))
                _log.warning("%s", error)
        except Exception:  # noqa: BLE001 - the next time is another try
            _log.exception("computing verdicts failed")
