"""Views as HTML and as JSON."""

import dataclasses
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from crosswind.dashboards import energy_wording, prediction_wording, wording
from crosswind.dashboards.assets import asset
from crosswind.dashboards.figures.chart import TITLE_PIXELS, Chart
from crosswind.dashboards.figures.verdicts import LOOKS
from crosswind.dashboards.pages.listed import rail
from crosswind.dashboards.pages.page import EXAMPLE, LEFT, PERIODS, SCOPE, Page, View, stem_of
from crosswind.dashboards.palette import VARIABLES
from crosswind.data.schema.answers.explanations import Interval
from crosswind.data.schema.answers.sql import cell
from crosswind.data.schema.answers.status import ServerStatus
from crosswind.data.schema.words import words

TEMPLATES = Path(__file__).parent.parent / "templates"
RELOAD_SECONDS = 2  # between two looks without scripts
OF_API = re.compile(r'\s*<a href="[^"]*\bexample/v1/[^"]*">[^<]*</a>')  # the example has pages alone
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True)
class Address:
    """The place of a page: `root` leads from it to the top (`../`), `next_cursor` goes on in its list.

    `sees_all` is whether the page is of all rows that are stored, `damaged` how many files of the lake lack in it.
    The reader `may_tune` studies, and `may_administer` models. A page that `is_example` leads to pages of the example,
    also `in_place` of one of the reader's own store, to whose pages the rail leads then; `lack` is what that page says.
    """

    root: str = ""
    path: str = ""
    query: Mapping[str, str] = dataclasses.field(default_factory=dict)
    next_cursor: str | None = None
    sees_all: bool = True
    damaged: int = 0
    may_tune: bool = False
    may_administer: bool = False
    is_example: bool = False
    in_place: bool = False
    lack: str = ""

    def with_query(self, **changes: str | None) -> str:
        """Return this page's own address without the cursor, some parameters changed or (None) removed."""
        words = {**{name: value for name, value in self.query.items() if name != "cursor"}, **changes}
        return self._here(words)

    def to(self, path: str, root: str | None = None, **query: str) -> str:
        """Return the address of another page, about the same system, workload and period unless `query` says others."""
        words = urlencode({**self.kept(), **query})
        there = (self.root if root is None else root) + path.lstrip("/")
        return f"{there}?{words}" if words else there

    def to_run(self, run_id: str, part: str = "") -> str:
        """Return the address of a run's page, or of its `part`, from which the way back is kept."""
        return self.to(f"runs/{quote(run_id, safe='')}{part}")

    def kept(self, *without: str) -> Mapping[str, str]:
        """Return the parameters that stay from page to page, without those that a form has itself."""
        names = (name for name in (*SCOPE, EXAMPLE) if name not in without)
        return {name: self.query[name] for name in names if self.query.get(name)}

    @property
    def top(self) -> str:
        """The way to the top of the server, from a page of the example too."""
        return self.root.removesuffix(f"{EXAMPLE}/") if self.is_example else self.root

    @property
    def home(self) -> str:
        """The way to the pages in the rail."""
        return self.top if self.in_place else self.root

    @property
    def has_left(self) -> bool:
        """Return whether the reader has left the example."""
        return not self.is_example and self.query.get(EXAMPLE) == LEFT

    @property
    def back(self) -> str:
        """The same page of the example."""
        return f"{self.root}{EXAMPLE}{quote(self.path)}"

    def leaving(self, page: Page) -> str:
        """Return the address of the reader's own page, however little it has; instead of a run the list of runs."""
        path = page.path.partition("{")[0].strip("/")
        return f"{self.top}{path}?{EXAMPLE}={LEFT}"

    @property
    def next_url(self) -> str:
        """The address where the list goes on."""
        return self._here({**self.query, "cursor": self.next_cursor})

    @property
    def twin_url(self) -> str:
        """The same as JSON."""
        return self._here(self.query, ".json")

    @property
    def report_url(self) -> str:
        """The page as one file."""
        return self._here(self.query, ".html")

    @property
    def csv_url(self) -> str:
        """The page's main table as CSV."""
        return self._here(self.query, ".csv")

    def _here(self, words: Mapping[str, str | None], form: str = "") -> str:
        query = urlencode({name: value for name, value in words.items() if value})
        path = stem_of(self.path) + form if form else self.path
        here = self.root + quote(path.lstrip("/"))
        return f"{here}?{query}" if query else here


def render(page: Page, view: View, address: Address, *, is_report: bool = False) -> str:
    """Return the page as HTML; as a report it stands alone, without ways to other pages."""
    template = _environment().get_template(page.template)
    words = {"page": page, "view": view, "address": address, "is_report": is_report}
    html = template.render(**words, root=address.root, top=address.top)
    return OF_API.sub("", html) if address.is_example else html


def render_error(status: int, title: str, detail: str, *, root: str = "/", remedy: str = "") -> str:
    """Return a refusal as a page, with reason and remedy; `root` leads from the page's address to the top (`../`)."""
    why = f"{detail[:1].upper()}{detail[1:]}"
    return _alone("error.html", root, status=status, title=title, detail=why, remedy=remedy)


def render_waiting(*, root: str = "/") -> str:
    """Return a page in place of one that is being computed; it shows that as soon as it is there."""
    return _alone("waiting.html", root, reload_seconds=RELOAD_SECONDS)


def _alone(template: str, root: str, **words: object) -> str:
    """Return a page that is none of the list."""
    return _environment().get_template(template).render(**words, root=root, top=root, page=None)


@dataclass(frozen=True)
class Login:
    """The contents of the login page: who is logged in and how, the link that was followed, the page to go to, why
    an attempt failed, the provider where people log in, and what the page leads on to by itself: a page of ours
    (`onward`), or where the provider's own session ends (`elsewhere`).
    """

    name: str | None = None
    is_session: bool = False
    is_admin: bool = False
    link: str = ""
    next: str = ""
    failure: str = ""
    provider: str = ""
    provider_url: str = ""
    onward: str = ""
    elsewhere: str | None = None


def render_login(login: Login, *, root: str = "./") -> str:
    """Return the page on which a browser logs in and out."""
    return _alone("login.html", root, login=login)


def render_docs(*, root: str = "./") -> str:
    """Return the page that shows the API's description."""
    return _alone("docs.html", root)


def render_status(status: ServerStatus, *, root: str = "./") -> str:
    """Return the page on the state of the server."""
    return _alone("status.html", root, status=status)


def as_json(page: Page, view: View, address: Address) -> dict[str, Json]:
    """Return the page's contents for machines; a missing value is null."""
    parts = {field.name: getattr(view, field.name) for field in dataclasses.fields(view)}  # type: ignore[arg-type]
    shown = {name: plain(value) for name, value in parts.items() if name not in {"charts", "next_place"}}
    charts: list[Json] = [_chart(chart) for chart in view.charts]
    facts: dict[str, Json] = {"page": page.name, "title": view.title, EXAMPLE: address.is_example}
    return {**facts, **shown, "charts": charts, "next": address.next_cursor}


def _chart(chart: Chart) -> Json:
    return {"name": chart.name, "title": chart.title, "sentence": chart.sentence, "table": plain(chart.table)}


def plain(value: object) -> Json:
    """Return a view's value in the types of JSON."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    raise TypeError(f"{type(value).__name__} in a view: expected plain values, mappings, lists and dataclasses")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=wording.number,
        seconds=wording.seconds,
        percent=wording.percent,
        size=wording.size,
        certainty=wording.certainty,
        cause_words=wording.cause_words,
        times=wording.times,
        signed=wording.signed,
        quantity=wording.quantity,
        spread=wording.spread,
        words=words,
        utc=wording.utc,
        iso=wording.iso,
        scalar=wording.scalar,
        energy=energy_wording.forecast_words,
        power_basis=energy_wording.power_words,
        basis=prediction_wording.basis_words,
        accuracy=prediction_wording.accuracy_words,
        outside=prediction_wording.outside_words,
        chance=prediction_wording.chance,
        interval=interval,
        in_path=in_path,
        cell=cell,
        headline=wording.headline,
        is_number=is_number,
        drawn=drawn,
    )
    environment.globals.update(
        rail=rail(),
        is_report=False,
        now_ns=time.time_ns,
        looks=LOOKS,
        count=wording.count,
        periods=PERIODS,
        variables=VARIABLES,
        version=lambda name: asset(name).version,
    )
    return environment


def interval(estimate: Interval | None) -> str:
    """An estimate with its interval, or a dash."""
    return wording.NONE if estimate is None else wording.estimate(estimate.value, estimate.low, estimate.high)


def is_number(arrow_type: str) -> bool:
    """Return whether a column of this type stands to the right."""
    return arrow_type.startswith(("int", "uint", "double", "float", "decimal"))


def in_path(text: str) -> str:
    """A text as one segment of an address."""
    return quote(text, safe="")


@dataclass(frozen=True)
class Drawn:
    """A figure for a page: its JSON, safe inside a script element, and its height in pixels."""

    json: Markup
    height: int


def drawn(chart: Chart) -> Drawn:
    """The chart's figure without its title, which the page gives as a heading."""
    figure = chart.draw()
    top = figure.layout["margin"]["t"] - TITLE_PIXELS
    text = figure.update_layout(title=None, margin={"t": top}).to_json()
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Drawn(Markup(safe), figure.layout["height"])  # noqa: S704
