"""The Overview page: what costs node-hours, what runs, and what is wrong, with what was stored since it was opened."""

import time
from dataclasses import dataclass, replace

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.pages.overview.asked import Asked
from crosswind.dashboards.pages.overview.block import Block, address_of
from crosswind.dashboards.pages.overview.lost import lost_hours
from crosswind.dashboards.pages.overview.parts import NAMES, PARTS
from crosswind.dashboards.pages.overview.running import running
from crosswind.dashboards.pages.overview.weather import weather_chart
from crosswind.dashboards.pages.page import OVERVIEW, PERIODS, RUN, Page, PageQuery, Place
from crosswind.dashboards.pages.scope import Scope, scope_of
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.events import EventKind

PERIOD, ALL, WEATHER = "30d", "all", "weather"
KINDS = (
    *(EventKind.RUN_STARTED, EventKind.RUN_ENDED, EventKind.RUN_VERDICT),
    *(EventKind.CHECK_MEASURED, EventKind.DATA_GAP),
)


@dataclass(frozen=True)
class OverviewView:
    """The page's contents; `part` is the one block that was asked for.

    `events` is where those after the one of id `position` come from, below the root of the pages.
    """

    sentence: str
    period: str
    scope: Scope | None
    part: str | None
    events: str
    position: int
    blocks: tuple[Block, ...]
    charts: tuple[Chart, ...] = ()
    next_place: Place | None = None

    title = "Overview"

    @property
    def is_empty(self) -> bool:
        """Return whether too little is stored for the page."""
        return self.scope is not None and not self.scope.stored


def view(client: Local, query: PageQuery) -> OverviewView:
    """Return the blocks that are ready at once, or one, or all of them. Raises: InvalidInputError."""
    part = query.choice("part", (*PARTS, ALL))
    period = query.choice("period", tuple(PERIODS)) or PERIOD
    asked = Asked(client, RunFilter(query.word("workload"), query.word("system")), time.time_ns())
    if part is not None and part in PARTS:
        block = PARTS[part](asked)
        chart = weather_chart(asked) if part == WEATHER else None
        charts = () if chart is None else (chart,)
        return OverviewView(NAMES[part], period, None, part, "", 0, (block,), charts)
    with client.store.catalog.read() as session:
        position = session.events.newest()
    events = address_of("v1/events", {"kinds": ",".join(KINDS), "quiet": "true", **asked.scope})
    of_period = scope_of(client, PageQuery({**query.parameters, "period": period}))
    scope = replace(of_period, period=query.word("period"))
    if not scope.stored:
        return OverviewView("", period, scope, part, events, position, ())
    lost = lost_hours(client, asked.wanted, PERIODS[period], asked.now_ns)
    rest = [of(asked) for of in PARTS.values()] if part == ALL else _quick(asked)
    return OverviewView(lost.finding, period, scope, part, events, position, (lost, *rest))


PAGE = Page("overview", "/", "overview.html", view, OVERVIEW, label="Overview", table="blocks", fill=RUN)


def _quick(asked: Asked) -> list[Block]:
    later = [Block(name, NAMES[name], is_pending=True) for name in PARTS if name != "running"]
    return [running(asked, is_whole=False), *later]
