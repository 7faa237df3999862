"""Housekeeping of a server beside answering: now and then it makes few files of the many that arrived."""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from crosswind.data.lake.compaction import compact
from crosswind.data.schema.errors import ConflictError, ProjectError
from crosswind.data.store.store import Store

PAUSE_SECONDS = 120.0
NICE = 10  # whoever waits for an answer goes first
END_SECONDS = 2.0

_log = logging.getLogger("crosswind.housekeeping")


@contextmanager
def housekeeping(store: Store, pause_seconds: float = PAUSE_SECONDS) -> Iterator[None]:
    """Compacts the store's lake again and again, within; leaving it, a compaction ends after the day it is at."""
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
    except Exception:  # noqa: BLE001 - whatever it is, the next time is another try
        _log.exception("compaction failed")
        return []
