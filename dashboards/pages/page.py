"""The parts of every page."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.data.lake.parts import DAY_NS
from crosswind.data.schema.errors import InvalidInputError

Place = tuple[int, str]  # of a run in the list: started_ns or 0, and run_id
PERIODS = {"1d": 1, "7d": 7, "30d": 30, "90d": 90, "365d": 365}  # days up to now
EXAMPLE, LEFT = "example", "no"  # pages of the example are below this path; the parameter leaves it
SCOPE = ("system", "workload", "period")  # parameters that a reader keeps from page to page
LISTS = ("columns", "run")  # parameters that may be given several times, or once with commas
HOUR_NS = 3_600_000_000_000


@dataclass(frozen=True)
class PageQuery:
    """The query of a page: its parameters, the run in the path, and the place from which a list goes on."""

    parameters: Mapping[str, str] = field(default_factory=dict)
    run_id: str = ""
    before: Place | None = None

    def word(self, name: str) -> str | None:
        """Return the value of a parameter; None if it is absent or empty, as from an empty form field."""
        return self.parameters.get(name, "").strip() or None

    def choice(self, name: str, expected: Sequence[str]) -> str | None:
        """Return a value out of a list. Raises: InvalidInputError."""
        value = self.word(name)
        if value is not None and value not in expected:
            raise InvalidInputError(f"query parameter {name}={value[:60]!r}: expected one of {', '.join(expected)}")
        return value

    def several(self, name: str) -> tuple[str, ...]:
        """Return the values of one of LISTS, each once."""
        return tuple(dict.fromkeys(value for value in self.parameters.get(name, "").split(",") if value.strip()))

    @property
    def days(self) -> int | None:
        """Return the length of the period, which ends now; None without one. Raises: InvalidInputError."""
        period = self.choice("period", tuple(PERIODS))
        return None if period is None else PERIODS[period]

    @property
    def since_ns(self) -> int | None:
        """Return the beginning of the period; None without one. Raises: InvalidInputError."""
        return None if self.days is None else time.time_ns() - self.days * DAY_NS

    @property
    def since_hour_ns(self) -> int | None:
        """Return the beginning of the period, of its full hour: answers that are kept hold for a while."""
        since_ns = self.since_ns
        return None if since_ns is None else since_ns // HOUR_NS * HOUR_NS

    def amount(self, name: str, default: int, *, most: int) -> int:
        """Return a whole number from 1 to `most`. Raises: InvalidInputError."""
        value = self.word(name)
        if value is None:
            return default
        if not value.isascii() or not value.isdigit() or len(value) > 9 or not 1 <= int(value) <= most:
            raise InvalidInputError(f"query parameter {name}={value[:60]!r}: expected a whole number from 1 to {most}")
        return int(value)


class View(Protocol):
    """The contents of a page, computed: plain values that become HTML or JSON."""

    @property
    def title(self) -> str:
        """The page's name, for the browser's tab."""
        ...

    @property
    def charts(self) -> tuple[Chart, ...]:
        """The figures, in order."""
        ...

    @property
    def is_empty(self) -> bool:
        """Return whether too little is stored for the page."""
        ...

    @property
    def next_place(self) -> Place | None:
        """The place from which a list goes on; None at its end and on other pages."""
        ...


OVERVIEW, RUNS, PREDICT, CAUSES, FLEET = "Overview", "Runs", "Predict", "Causes", "Fleet"  # groups, entries of the rail
TUNING, SQL = "Tuning", "SQL"
RUN = "crosswind run -- torchrun --nproc-per-node 2 train.py"


def stem_of(path: str) -> str:
    """Return the beginning of the addresses of a page as JSON, as CSV and as a file; that of `/` has a name there."""
    return "/overview" if path == "/" else path


@dataclass(frozen=True)
class Page:
    """One page: its address, its template, its view, and its group, among whose tabs it is if it has a label.

    `table` is the field of the view with the page's main table, which is its CSV. `fill` is the command that fills it,
    and `hint` says what that does.
    """

    name: str
    path: str
    template: str
    view: Callable[[Local, PageQuery], View]
    group: str
    label: str | None = None
    table: str = ""
    fill: str = ""
    hint: str = "Record a run"

    @property
    def stem(self) -> str:
        """The beginning of the addresses of its other forms."""
        return stem_of(self.path)
