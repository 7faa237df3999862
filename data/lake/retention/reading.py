"""Files of a set that a question is answered from: of each day its raw rows, or a roll-up of them and what came later.

Raw rows that are gone are answered for by roll-ups; others also, where a coarser answer is wanted. The raw files are
listed before the roll-ups, so that what was retired in between is in these.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from crosswind.data.lake.lake import Lake
from crosswind.data.lake.parts import DAY_NS, Span
from crosswind.data.lake.retention.days import DayFiles, days_in, rolled_up
from crosswind.data.lake.storage import Filed
from crosswind.data.schema.keeping import rollup_name, rollups_of_set

LOOK_BACK_NS = 3_600_000_000_000  # from raw rows into a day that a roll-up stands for, although its raw rows are there


@dataclass(frozen=True)
class Coarse:
    """A question that roll-ups may answer where raw rows are there, too: of steps of so many seconds, of this time."""

    step_seconds: int
    span: Span  # [begin, end): days that are not whole in it are read raw


@dataclass
class Reading:
    """Files by what is read from them: raw samples, roll-ups by their resolution in seconds, and raw rows for growth.

    `raw` are the days whose growth is that of raw rows, `days` those that roll-ups stand for, by resolution. `cuts`
    are times [begin, end) whose rows the growth of these days does not need.
    """

    rows: list[Filed] = field(default_factory=list)
    rolled: dict[int, list[Filed]] = field(default_factory=dict)
    growth: list[Filed] = field(default_factory=list)
    raw: list[int] = field(default_factory=list)
    days: dict[int, list[int]] = field(default_factory=dict)
    cuts: list[Span] = field(default_factory=list)

    def of_rolled(self) -> Iterator[tuple[Span, int]]:
        """Yield the times [begin, end) that roll-ups stand for, with their resolution in seconds, in order."""
        by_day = sorted((day, seconds) for seconds, days in self.days.items() for day in days)
        begin = None
        for place, (day, seconds) in enumerate(by_day):
            begin = day if begin is None else begin
            if by_day[place + 1 : place + 2] != [(day + 1, seconds)]:
                yield (begin * DAY_NS, (day + 1) * DAY_NS), seconds
                begin = None


def reading(lake: Lake, name: str, within: Span, *, look_back_ns: int, coarse: Coarse | None = None) -> Reading:
    """Return what to read of a set; growth is looked for so long before the first row.

    Raises: MalformedError, OSError, UnavailableError.
    """
    storage, earliest = lake.storage, within[0] - (DAY_NS if coarse else look_back_ns)
    days = days_in(storage.listed(name, (earliest, within[1])))
    resolutions = rollups_of_set(storage.sets(), name)
    rollups = {one: days_in(storage.listed(rollup_name(name, one), within)) for one in resolutions}
    plan = _Plan(lake, days, rollups, coarse)
    for number, day in days.items():
        if within[0] // DAY_NS <= number <= within[1] // DAY_NS:
            plan.add(day)
    plan.add_growth(within[0] - look_back_ns)
    return plan.answer


@dataclass(frozen=True)
class _Plan:
    lake: Lake
    days: Mapping[int, DayFiles]
    rollups: Mapping[int, Mapping[int, DayFiles]]
    coarse: Coarse | None
    answer: Reading = field(default_factory=Reading)

    def add(self, day: DayFiles) -> None:
        rolled = self._rolled(day)
        if rolled is not None:
            self._add_rolled(*rolled, day)
        else:
            self.answer.rows += day.fresh
            self.answer.raw += [day.day] if day.last is None else []

    def _add_rolled(self, seconds: int, file: Filed, day: DayFiles) -> None:
        self.answer.rolled.setdefault(seconds, []).append(file)
        self.answer.days.setdefault(seconds, []).append(day.day)
        if day.last is not None and day.fresh:
            held = self.lake.storage.made_of(file)
            self.answer.rows += [one for one in day.fresh if one.path.name not in held]

    def _rolled(self, day: DayFiles) -> tuple[int, Filed] | None:
        """Return the roll-up that stands for a day, and its resolution; None where raw rows do."""
        made = {one: of_one[day.day].files[0] for one, of_one in self.rollups.items() if day.day in of_one}
        if day.last is None:
            name = rolled_up(day, self.days.get(day.day - 1)) if made and self._is_coarse(day) else ""
            made = {one: file for one, file in made.items() if file.path.name == name}
        fitting = [one for one in made if self.coarse and self.coarse.step_seconds % one == 0]
        finest = [] if day.last is None else sorted(made)[:1]
        chosen = max(fitting) if fitting else next(iter(finest), None)
        return None if chosen is None else (chosen, made[chosen])

    def _is_coarse(self, day: DayFiles) -> bool:
        begin, end = day.day * DAY_NS, (day.day + 1) * DAY_NS
        return self.coarse is not None and self.coarse.span[0] <= begin and end <= self.coarse.span[1]

    def add_growth(self, earliest_ns: int) -> None:
        """Add the files of the days with raw rows, and of those before them what their first growth needs."""
        raw = set(self.answer.raw)
        for day in self.answer.raw:
            before = self.days.get(day - 1)
            if before is not None and day - 1 not in raw and day * DAY_NS > earliest_ns:
                self.answer.growth += before.files if before.last is None else [before.last]
                if before.last is None:
                    self.answer.cuts.append(((day - 1) * DAY_NS, day * DAY_NS - LOOK_BACK_NS))
            self.answer.growth += self.days[day].files
