"""A policy applied to a lake: what is due is rolled up, retired and removed, one day of a set after another.

Each is one change of the lake, so that a process that is killed leaves a lake to which the next one goes on. Whoever
reads sees a day's raw rows, or its roll-up: which of the two, the names of the day's files say.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.data.lake.damage import passing_over
from crosswind.data.lake.lake import Lake
from crosswind.data.lake.mounts import MOUNTS
from crosswind.data.lake.removal import remove_drafts
from crosswind.data.lake.retention.due import Due, due
from crosswind.data.lake.retention.retirement import retire
from crosswind.data.lake.retention.rollups_of_day import add_late, roll_up
from crosswind.data.schema.errors import ConflictError, UnavailableError
from crosswind.data.schema.keeping import KeepPolicy

TURN_SECONDS = 20.0
BREAK_SECONDS = 0.3  # between turns: others look every tenth of a second whether it is theirs
PATIENCE_SECONDS = 60.0


@dataclass
class Upkeep:
    """Counts of days of sets: with work, rolled up, retired (with the bytes of raw files), removed; and problems."""

    days: int = 0
    rolled_up: int = 0
    retired: int = 0
    retired_bytes: int = 0
    removed: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def changes(self) -> int:
        """The number of changes."""
        return self.rolled_up + self.retired + self.removed

    def report(self, problems: Iterable[str]) -> None:
        """Add those problems that are not in it."""
        self.problems += [problem for problem in problems if problem not in self.problems]


def upkeep(
    lake: Lake,
    policy: KeepPolicy,
    *,
    now_ns: int | None = None,
    is_over: Callable[[], bool] = lambda: False,
    mounts: Path = MOUNTS,
) -> Upkeep:
    """Apply a policy; `is_over` ends it early, between days of sets. What cannot be read stays, and is reported.

    Raises: ConflictError while somebody else changes the lake; UnavailableError where it cannot be written, or a lock
    there need not hold on every node.
    """
    done, now = Upkeep(), time.time_ns() if now_ns is None else now_ns
    if not lake.root.is_dir():
        return done
    if why := lake.storage.why_unsafe(mounts):
        raise UnavailableError(f"lake {lake.root} is not retired on {why}")
    work = _Work(lake, policy, now, is_over, done)
    try:
        if not work.turn():
            raise ConflictError(f"lake {lake.root} is being compacted by another process")
        while work.goes_on:
            time.sleep(BREAK_SECONDS)
            work.turn(PATIENCE_SECONDS)
    except OSError as error:
        raise UnavailableError(f"lake {lake.root} cannot be retired: {error}") from error
    return done


@dataclass
class _Work:
    """Work by turns, so that compaction, erasure and backups have theirs; `goes_on` while there is more."""

    lake: Lake
    policy: KeepPolicy
    now_ns: int
    is_over: Callable[[], bool]
    done: Upkeep
    goes_on: bool = field(default=False, init=False)

    def turn(self, patience_seconds: float = 0.0) -> bool:
        """Do what is due for some time, unless somebody else changes the lake; whether it was ours."""
        with self.lake.storage.changing(patience_seconds) as is_ours:
            self.goes_on = is_ours and self._do_some()
        return is_ours

    def _do_some(self) -> bool:
        """Return whether there is more, and something was done."""
        remove_drafts(self.lake.root)
        problems: list[str] = []
        try:
            return self._do(due(self.lake, self.policy, self.now_ns, problems))
        finally:
            self.done.report(problems)

    def _do(self, works: Iterable[Due]) -> bool:
        until, before = time.monotonic() + TURN_SECONDS, self.done.changes
        for one in works:
            if self.is_over():
                return False
            _try(one, self.done)
            if time.monotonic() > until and self.done.changes > before:
                return True
        return False


def expected(lake: Lake, policy: KeepPolicy, now_ns: int | None = None) -> Upkeep:
    """Return what `upkeep` would do now, without doing it. Raises: OSError for a full disk, UnavailableError."""
    answer = Upkeep()
    for work in due(lake, policy, time.time_ns() if now_ns is None else now_ns, answer.problems):
        _count(work, answer)
    return answer


def _try(work: Due, done: Upkeep) -> None:
    problems: list[str] = []
    done.days += 1
    try:
        with passing_over(problems, f"{work.of.name} of {work.day.date}"):
            _do(work, done)
    except ConflictError as error:
        problems.append(str(error))
    done.report(problems)


def _do(work: Due, done: Upkeep) -> None:
    size = _bytes(work)
    if work.day.last is None and work.roll:
        roll_up(work.of, work.day, work.before, work.roll)
    for seconds in work.roll if work.day.last else ():
        add_late(work.of, work.day, seconds)
    done.rolled_up += bool(work.roll)
    if work.retire:
        retire(work.of, work.day, list(work.retire))
        done.retired += 1
        done.retired_bytes += size
    for seconds in work.expire:
        done.removed += work.of.lake.storage.discard(work.of.rollup_folder(seconds, work.day))


def _count(work: Due, answer: Upkeep) -> None:
    answer.days += 1
    answer.rolled_up += bool(work.roll)
    answer.retired += bool(work.retire)
    answer.retired_bytes += _bytes(work)
    answer.removed += len(work.expire)


def _bytes(work: Due) -> int:
    return sum(file.bytes for file in work.day.files) if work.retire else 0
