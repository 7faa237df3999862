"""The time that a report on the fleet is about: the days up to now, or the newest ones that have data."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from crosswind.data.lake.lake import Lake
from crosswind.data.lake.parts import ALWAYS, DAY_NS
from crosswind.data.store.store import Store

NEWEST_DAYS = 7


@dataclass(frozen=True)
class Period:
    """A time of nodes, ns UTC; `is_newest`: the newest days that have data, wherever those are."""

    from_ns: int
    to_ns: int
    days: int
    is_newest: bool

    @property
    def span(self) -> tuple[int, int]:
        """Return the first and the last nanosecond."""
        return self.from_ns, self.to_ns

    @property
    def words(self) -> str:
        """The time in words: `in the last 7 days`."""
        if not self.is_newest:
            return "in the last day" if self.days == 1 else f"in the last {self.days} days"
        end = datetime.fromtimestamp(self.to_ns / 1e9, tz=UTC)
        return f"in the newest {self.days} days that have data, up to {end:%Y-%m-%d %H:%M} UTC"


def period_of(days: int | None, newest_ns: int | None) -> Period:
    """Return the days up to now, or without their number the seven up to the newest data, or up to now without any."""
    now_ns = time.time_ns()
    to_ns = now_ns if days is not None or newest_ns is None else min(newest_ns + 1, now_ns)
    length = NEWEST_DAYS if days is None else days
    return Period(to_ns - length * DAY_NS, to_ns, length, is_newest=days is None and newest_ns is not None)


def newest_sample_ns(store: Store, names: Iterable[str]) -> int | None:
    """Return when the newest sample of these sets was taken that may be seen; None without one."""
    newest = [_newest(store.lake, name) for name in names if name in store.lake.sets()]
    return max((ns for ns in newest if ns is not None), default=None)


def newest_run_ns(store: Store) -> int | None:
    """Return when the newest run began, or ended if that is known; None without one."""
    with store.catalog.read() as session:
        runs = session.runs.find(limit=1)
    return max((ns for run in runs for ns in (run.started_ns, run.ended_ns) if ns is not None), default=None)


def _newest(lake: Lake, name: str) -> int | None:
    """Look at the newest day alone: a set may have years of them."""
    newest_day = datetime.fromisoformat(lake.storage.dates(name)[-1]).replace(tzinfo=UTC)
    begin_ns = int(newest_day.timestamp()) * 1_000_000_000
    sql = f'select max(ts_ns) as ns from "{name}" where ts_ns >= ?'  # noqa: S608 - a set's name
    newest: int | None = lake.table(sql, [begin_ns], within=(begin_ns, ALWAYS[1]))["ns"][0].as_py()
    return newest
