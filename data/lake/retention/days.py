"""Days of a set: their files, whether they were retired, and the names of the roll-ups that are made of them.

The name of a roll-up's file says what it is of, so that a look at names tells whether it is up to date.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from crosswind.data.lake.parts import DAY_NS, Span, compacted_span, date_of, digest_of_names, is_last_rows
from crosswind.data.lake.storage import Filed

FORM = "rolled up as of 1"  # of roll-ups: another number has all made again that raw rows are there for


@dataclass(frozen=True)
class DayFiles:
    """The files of a day, counted from 1970, that count: those with rows, and `last` where others were retired."""

    day: int
    fresh: tuple[Filed, ...] = ()
    last: Filed | None = None

    @property
    def span(self) -> Span:
        """The first and the last nanosecond."""
        return self.day * DAY_NS, (self.day + 1) * DAY_NS - 1

    @property
    def date(self) -> str:
        """Its date, as names have it."""
        return date_of(self.day)

    @property
    def files(self) -> tuple[Filed, ...]:
        """All of them."""
        return self.fresh if self.last is None else (self.last, *self.fresh)

    @property
    def names(self) -> list[str]:
        """The names of them all."""
        return [file.path.name for file in self.files]

    @property
    def digest(self) -> str:
        """The digest that the next day's roll-up depends on, which stays when the day is retired."""
        if self.last is not None and not self.fresh:
            return self.last.path.stem.removesuffix("-last").rpartition("_")[2]
        return digest_of_names(self.names)

    def named(self, made_of: Iterable[str], suffix: str = "") -> str:
        """Return the name of a file for the whole day that is made of others."""
        return f"part-c{self.span[0]}_{self.span[1]}_{digest_of_names(made_of)}{suffix}.parquet"


def days_in(files: Iterable[Filed]) -> Mapping[int, DayFiles]:
    """Return the days that have files, in order."""
    by_day: dict[int, list[Filed]] = defaultdict(list)
    for file in files:
        by_day[_day(file.date)].append(file)
    return {day: _files(day, by_day[day]) for day in sorted(by_day)}


def _files(day: int, files: Iterable[Filed]) -> DayFiles:
    files = list(files)
    last = next((file for file in files if is_last_rows(file.path.name)), None)
    return DayFiles(day, tuple(file for file in files if file is not last), last)


def covers(day: DayFiles, before: DayFiles | None) -> list[str]:
    """Return what a day's roll-up is made of: its files, and those of the day before for the first growth."""
    earlier = "" if before is None else before.digest
    return [FORM, f"after {earlier}", *(file.path.name for file in day.fresh)]


def rolled_up(day: DayFiles, before: DayFiles | None) -> str:
    """Return the name of the roll-up of a day that has its raw rows."""
    return day.named(covers(day, before))


def _day(date: str) -> int:
    moment = datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1_000_000_000 // DAY_NS


def is_whole_day(name: str) -> bool:
    """Return whether a file stands for a whole day."""
    span = compacted_span(name)
    return span is not None and span[0] % DAY_NS == 0 and span[1] == span[0] + DAY_NS - 1
