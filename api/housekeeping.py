"""Housekeeping of a server: from time to time it compacts the many files that arrived into few."""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from crosswind.data.lake.compaction import compact
from crosswind.data.schema.errors import ConflictError, ProjectError
from crosswind.data.store.store import Store

PAUSE_SECONDS = 120.0
NICE = 10  # answers to requests go first
END_SECONDS = 2.0

_log = logging.getLogger("crosswind.housekeeping")


@contextmanager
def housekeeping(store: Store, pause_seconds: float = PAUSE_SECONDS) -> Iterator[None]:
    """Compact the store's lake within the context; at its end a compaction stops after the day in progress."""
    ending = threading.Event()
    thread = threading.Thread(target=_keep, args=(store, pause_seconds, ending), name="housekeeping", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join(END_SECONDS)


def _keep(store: Store, pause_seconds: float, ending: threading.Event) -> None:
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
    logged: set[str] = set()
    while not ending.wait(pause_seconds):
        for problem in _problems(store, ending):
            if problem not in logged:  # once, not every time
                logged.add(problem)
                _log.warning("%s", problem)


def _problems(store: Store, ending: threading.Event) -> list[str]:
    try:
        return compact(store.lake, is_over=ending.is_set).problems
    except ConflictError:  # one of several servers does it
        return []
    except (ProjectError, OSError) as error:
        return [str(error)]
    except Exception:  # noqa: BLE001 - the next time is another try
        _log.exception("compaction failed")
        return []
