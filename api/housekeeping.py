"""Housekeeping of a server: it stores what runs leave in its folder, and compacts many files into few now and then.

Once an hour it also rolls up and retires what the policy of the installation says, right after a compaction.
"""

import logging
import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from crosswind.api.freed_memory import give_back_memory
from crosswind.api.settings import ServerSettings
from crosswind.api.thread_beside import Ending, WarnOnce, thread_beside
from crosswind.data.lake.compaction import compact
from crosswind.data.schema.batch import DAY_NS
from crosswind.data.schema.errors import ConflictError, ProjectError
from crosswind.data.schema.keeping import EVERYTHING, KeepPolicy
from crosswind.data.store.run_owners import settle_owners
from crosswind.data.store.store import Store
from crosswind.ingest.load.incoming import take_incoming

PAUSE_SECONDS = 120.0
FIRST_SECONDS = 10.0  # after the start, as some servers are restarted before a pause is over
RETENTION_SECONDS = 3600.0
ROUND_SECONDS = 300.0  # of roll-ups, then what came meanwhile is compacted before they go on
BATCHES_AT_ONCE = 2000
LOOK_SECONDS = 2.0  # between looks at what runs have left
END_SECONDS = 2.0
USUAL = ServerSettings()

Chore = tuple[Callable[[], list[str]], str]  # work that returns problems, and words for when it fails
_log = logging.getLogger("crosswind.housekeeping")


def housekeeping(
    store: Store,
    note_uses: Callable[[], list[str]] = list,
    pause_seconds: float = PAUSE_SECONDS,
    *,
    settings: ServerSettings = USUAL,
) -> AbstractContextManager[Ending]:
    """Take in, compact and note uses within the context; at its end a compaction stops after the day in progress."""

    def work(ending: Ending) -> None:
        retention = _Retention(store, settings.kept)
        chores = (
            (note_uses, "noting uses of tokens failed"),
            (lambda: _settle(store, settings.audit_days), "settling owners failed"),
            (lambda: forget_batches(store, settings.batch_days, ending), "forgetting batches failed"),
            (lambda: _tidy(store, ending), "compaction failed"),
            (lambda: retention.apply(ending), "roll-ups failed"),
        )
        _keep(store, chores, pause_seconds, ending)

    return thread_beside(work, "housekeeping", end_seconds=END_SECONDS)


def _keep(store: Store, chores: Sequence[Chore], pause_seconds: float, ending: Ending) -> None:
    warn = WarnOnce(_log)
    due = time.monotonic() + min(FIRST_SECONDS, pause_seconds)
    while not ending.wait(min(LOOK_SECONDS, pause_seconds)):
        problems = _problems(lambda: take_incoming(store), "storing what runs left failed")
        if time.monotonic() >= due:
            due = time.monotonic() + pause_seconds
            problems += [problem for work, failure in chores for problem in _problems(work, failure)]
            give_back_memory()
        for problem in problems:
            warn(problem)


def _settle(store: Store, audit_days: int) -> list[str]:
    """Note whose the runs of jobs are, and forget old events and entries of the audit trail. Return problems: none."""
    with store.catalog.alone("owners") as is_ours:
        if is_ours:
            settle_owners(store)
    with store.catalog.write() as session:
        session.audit.forget(time.time_ns(), audit_days)
        session.events.forget(time.time_ns())
    return []


def forget_batches(store: Store, days: int, ending: Ending) -> list[str]:
    """Forget batches that were made so many days ago, some in each transaction. Return problems: none."""
    before_ns, count = store.catalog.clock() - days * DAY_NS, BATCHES_AT_ONCE
    with store.catalog.alone("batches") as is_ours:
        while is_ours and count >= BATCHES_AT_ONCE and not ending.is_set():
            with store.catalog.write() as session:
                count = session.batches.forget(before_ns, BATCHES_AT_ONCE)
    return []


def _tidy(store: Store, ending: Ending) -> list[str]:
    store.lake.storage.tidy()
    return compact(store.lake, is_over=ending.is_set).problems


@dataclass
class _Retention:
    """A policy, applied once in RETENTION_SECONDS: it is about days."""

    store: Store
    policy: KeepPolicy
    due: float = -math.inf  # by the monotonic clock

    def apply(self, ending: Ending) -> list[str]:
        """Roll up and retire what is due, and return problems."""
        if self.policy == EVERYTHING or time.monotonic() < self.due:
            return []
        from crosswind.data.lake.retention.upkeep import upkeep  # noqa: PLC0415 - few servers have a policy

        until = time.monotonic() + ROUND_SECONDS

        def is_over() -> bool:
            return ending.is_set() or time.monotonic() > until

        problems = upkeep(self.store.lake, self.policy, is_over=is_over).problems
        if not is_over():
            self.due = time.monotonic() + RETENTION_SECONDS
        return problems


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
