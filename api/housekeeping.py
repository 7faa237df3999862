"""Housekeeping of a server: it stores what runs leave in its folder, and compacts many files into few now and then."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from crosswind.data.lake.compaction import compact
from crosswind.data.lake.removal import remove_abandoned
from crosswind.data.schema.errors import ConflictError, ProjectError
from crosswind.data.store.store import Store
from crosswind.ingest.load.incoming import take_incoming

PAUSE_SECONDS = 120.0
LOOK_SECONDS = 2.0  # between looks at what runs have left
NICE = 10  # answers to requests go first
END_SECONDS = 2.0

_log = logging.getLogger("crosswind.housekeeping")


@contextmanager
def housekeeping(store: Store, pause_seconds: float = PAUSE_SECONDS) -> Iterator[None]:
    """Take in and compact within the context; at its end a compaction stops after the day in progress."""
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
    due = time.monotonic() + pause_seconds
    while not ending.wait(min(LOOK_SECONDS, pause_seconds)):
        problems = _problems(lambda: take_incoming(store), "storing what runs left failed")
        if time.monotonic() >= due:
            due = time.monotonic() + pause_seconds
            problems += _problems(lambda: _tidy(store, ending), "compaction failed")
        for problem in problems:
            if problem not in logged:  # once, not every time
                logged.add(problem)
                _log.warning("%s", problem)


def _tidy(store: Store, ending: threading.Event) -> list[str]:
    remove_abandoned(store.home / "lake")
    return compact(store.lake, is_over=ending.is_set).problems


def _problems(work: Callable[[], list[str]], failure: str) -> list[str]:
    try:
        return work()
    except ConflictError:  # one of several servers does it
        return []
    except (ProjectError, OSError) as error:
        return [str(error)]
    except Exception:  # noqa: BLE001 - the next time is another try
        _log.exception(failure)
        return []
