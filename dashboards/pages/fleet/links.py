"""The Links page: links that lose, repeat or drop more than their peers, and slow ones."""

from dataclasses import dataclass

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.nodes.losses import losses_of
from crosswind.dashboards.pages.page import FLEET, Page, PageQuery, Place
from crosswind.dashboards.wording import count, number, percent
from crosswind.models.reports.links import FleetLinks, LinkEvents, SlowLink, fleet_links

SHOWN, MOST_SHOWN = 25, 500


@dataclass(frozen=True)
class LinksView:
    """The page's contents; the rows have the worst of `listed` measures of links."""

    sentence: str
    chosen: str | None
    period: str
    sets: tuple[str, ...]
    nodes: int
    worse: int
    listed: int
    rows: tuple[LinkEvents, ...]
    slow: tuple[SlowLink, ...]
    charts: tuple[Chart, ...]
    next_place: Place | None = None

    title = "Links"

    @property
    def is_empty(self) -> bool:
        """Return whether too little is stored for the page."""
        return bool(self.period) and not self.sets


def view(client: Local, query: PageQuery) -> LinksView:
    """Return the links of the fleet, the worst first: of all rows, for they carry everybody's traffic."""
    days, limit = query.days, query.amount("limit", SHOWN, most=MOST_SHOWN)
    chosen = query.word("period")
    if not client.store.rule.sees_all:
        sentence = "Links carry everybody's traffic: only those who may see all rows see them here."
        return LinksView(sentence, chosen, "", (), 0, 0, 0, (), (), ())
    fleet = client.compute(client.store, fleet_links, days)
    lossy = [row for row in fleet.events if row.events > 0]
    chart = losses_of(fleet)
    return LinksView(
        sentence=_sentence(fleet),
        chosen=chosen,
        period=fleet.period.words,
        sets=fleet.sets,
        nodes=fleet.nodes,
        worse=sum(row.is_worse for row in lossy),
        listed=len(lossy),
        rows=tuple(lossy[:limit]),
        slow=fleet.slow[:limit],
        charts=() if chart is None else (chart,),
    )


PAGE = Page(
    "links",
    "/links",
    "links.html",
    view,
    FLEET,
    label="Links",
    table="rows",
    fill="crosswind agent",
    hint="Sample your nodes",
)


def _sentence(fleet: FleetLinks) -> str:
    if not fleet.events:
        return f"No link was sampled {fleet.period.words}."
    worse = [row for row in fleet.events if row.is_worse]
    if not worse:
        slow = f"; {count(len(fleet.slow), 'link')} slower than others of their name" if fleet.slow else ""
        return f"No link of {count(fleet.nodes, 'node')} loses far more than its peers{slow}."
    first = worse[0]
    extent = percent(first.share) if first.is_share else number(first.events)
    usual = percent(first.median) if first.is_share else f"{number(first.median)} a day"
    others = f"; {count(len(worse) - 1, 'other')} besides" if len(worse) > 1 else ""
    return f"{first.node} {first.device} has {extent} {first.measure}, where its peers have {usual}{others}."
