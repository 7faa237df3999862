"""The parts of every page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.data.schema.errors import InvalidInputError

Place = tuple[int, str]  # of a run in the list: started_ns or 0, and run_id


@dataclass(frozen=True)
class Asked:
    """The request of a reader: the query's words, the run in the path, and where in the list to go on."""

    query: Mapping[str, str] = field(default_factory=dict)
    run_id: str = ""
    before: Place | None = None

    def word(self, name: str) -> str | None:
        """The value of a query parameter; None when it is absent or empty, as from a form field left alone."""
        return self.query.get(name, "").strip() or None

    def choice(self, name: str, expected: Sequence[str]) -> str | None:
        """A value out of a list. Raises: InvalidInputError."""
        value = self.word(name)
        if value is not None and value not in expected:
            raise InvalidInputError(f"query parameter {name}={value[:60]!r}: expected one of {', '.join(expected)}")
        return value

    def amount(self, name: str, default: int, *, most: int) -> int:
        """A whole number from 1 to `most`. Raises: InvalidInputError."""
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
    def next_place(self) -> Place | None:
        """The place where a list goes on; None at its end and on other pages."""
        ...


@dataclass(frozen=True)
class Page:
    """One page: its address, its place in the rail (none without a label), its template, and what it shows."""

    name: str
    path: str
    template: str
    view: Callable[[Local, Asked], View]
    label: str | None = None
    section: str = ""  # name of the page in the rail that it belongs to
