"""Work that a policy has on a lake: days to roll up, raw rows to retire and roll-ups to remove, by a look at names."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from crosswind.data.lake.compaction import LATE_NS
from crosswind.data.lake.damage import passing_over
from crosswind.data.lake.lake import Lake
from crosswind.data.lake.retention.days import DayFiles, days_in, rolled_up
from crosswind.data.lake.retention.rolled_set import is_rolled_up
from crosswind.data.lake.retention.rollups_of_day import SetToRoll, uncovered
from crosswind.data.schema.keeping import KeepPolicy, Kept, rollup_name, rollups_of_set

CLOSED_NS = 8 * LATE_NS  # after the end of a day: compaction has made few files of it by then
SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class Due:
    """Work on a day of a set: resolutions to roll up at, whether its raw rows go then, and roll-ups to remove."""

    of: SetToRoll
    day: DayFiles
    before: DayFiles | None
    roll: tuple[int, ...]
    retire: tuple[int, ...]  # the resolutions that must have all rows before these go; none: they stay
    expire: tuple[int, ...]


def due(lake: Lake, policy: KeepPolicy, now_ns: int, problems: list[str]) -> Iterator[Due]:
    """Yield the work, set by set and day by day; a set whose files cannot be told apart is passed over, as a problem.

    Raises: OSError for a full disk, UnavailableError.
    """
    stored = lake.storage.sets()
    for name in lake.sets():
        kept = policy.kept(name)
        with passing_over(problems, f"set {name}"):
            if kept != Kept() and is_rolled_up(lake, name):
                yield from _OfSet(SetToRoll(lake, name), kept, now_ns, tuple(rollups_of_set(stored, name))).due()


@dataclass(frozen=True)
class _OfSet:
    of: SetToRoll
    kept: Kept
    now_ns: int
    stored: Sequence[int]

    def due(self) -> Iterator[Due]:
        storage = self.of.lake.storage
        days = dict(days_in(storage.listed(self.of.name)))
        rollups = {one: days_in(storage.listed(rollup_name(self.of.name, one))) for one in self.stored}
        for number, day in list(days.items()):
            if number >= 0 and day.span[1] + CLOSED_NS < self.now_ns:
                made = {one: of_one[number] for one, of_one in rollups.items() if number in of_one}
                work = self._of_day(day, days.get(number - 1), made)
                if work.roll or work.retire or work.expire:
                    yield work
                if work.retire:  # the next day's roll-up needs what is left of it
                    days[number] = days_in(storage.listed(self.of.name, day.span))[number]

    def _of_day(self, day: DayFiles, before: DayFiles | None, made: Mapping[int, DayFiles]) -> Due:
        wanted = self._wanted(day)
        if day.last is None:
            wanted = wanted or list(self.kept.rollups)[-1:]
            name = rolled_up(day, before)
            roll = [one for one in wanted if one not in made or name not in made[one].names]
            needed = wanted
        else:
            roll = [one for one in made if uncovered(self.of, day, made[one].files[0])]
            needed = list(made)
        is_over = self.kept.raw is not None and self._age_seconds(day) >= self.kept.raw
        retire = needed if is_over and day.fresh else []
        is_away = bool(retire) or (day.last is not None and not day.fresh)
        expire = [one for one in self.kept.rollups if is_away and one in made and one not in wanted]
        if set(wanted) - made.keys() - set(roll):
            expire = []  # a coarser one that was to stay is not there
        return Due(self.of, day, before, tuple(roll), tuple(retire), tuple(expire))

    def _wanted(self, day: DayFiles) -> list[int]:
        age = self._age_seconds(day)
        return [one for one, seconds in self.kept.rollups.items() if seconds is None or age < seconds]

    def _age_seconds(self, day: DayFiles) -> float:
        return (self.now_ns - day.span[1]) / SECOND_NS
