"""Losses of links: their share by measure, and the links that lose far more than their peers."""

import math
from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import TABLE_ROWS, Table, label, paper
from crosswind.dashboards.palette import BLUE, VERMILION
from crosswind.dashboards.wording import NONE, count, number, percent
from crosswind.models.reports.links import FleetLinks, LinkEvents

DRAWN = 1000  # links with losses, the worst


@dataclass(frozen=True)
class Losses:
    """Links with losses out of packets, the worst first; of `compared` measures of links these are some."""

    name: ClassVar[str] = "losses"
    links: tuple[LinkEvents, ...]
    compared: int

    @property
    def title(self) -> str:
        """The finding."""
        worse = sum(link.is_worse for link in self.links)
        if not worse:
            return "No link loses far more than its peers"
        return f"{count(worse, 'link')} {'loses' if worse == 1 else 'lose'} over five times as much as the peers"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        worst = self.links[0]
        return (
            f"Share of packets or segments by measure, of the {len(self.links)} of {count(self.compared, 'link')} that "
            f"lost any; worst is {worst.node} {worst.device}, {worst.measure} {percent(worst.share)}."
        )

    @property
    def table(self) -> Table:
        """The numbers drawn, the worst first."""
        rows = (
            (
                f"{link.node} {link.device}",
                link.measure,
                percent(link.share),
                NONE if link.median is None else percent(link.median),
                number(int(link.events)),
            )
            for link in self.links[:TABLE_ROWS]
        )
        return Table(("link", "measure", "share", "median of peers", "events"), tuple(rows))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        measures = list(dict.fromkeys(link.measure for link in self.links))
        figure = paper(self.title, height=160 + 48 * len(measures), x="share of packets, %", y="")
        for is_worse, name, colour, symbol in (
            (False, "as its peers", BLUE, "circle-open"),
            (True, "over five times its peers", VERMILION, "triangle-up"),
        ):
            links = [link for link in self.links if link.is_worse is is_worse]
            if links:
                figure.add_scatter(
                    x=[100 * link.share for link in links],
                    y=[link.measure for link in links],
                    name=name,
                    mode="markers",
                    marker={"color": colour, "symbol": symbol, "size": 10},
                    customdata=[[link.node, _words(link)] for link in links],
                    hovertemplate="%{customdata[1]}<extra></extra>",
                )
        figure.update_yaxes(type="category", categoryarray=measures[::-1])
        decades = [math.log10(100 * link.share) for link in self.links]
        whole = [math.floor(min(decades)) - 0.1, math.ceil(max(decades)) + 0.1]
        return figure.update_xaxes(type="log", range=whole, dtick=1, exponentformat="none")


def _words(link: LinkEvents) -> str:
    return f"{label(link.node)} {label(link.device)}<br>{link.measure}: {percent(link.share)}"


def losses_of(fleet: FleetLinks) -> Losses | None:
    """The figure, or None where nothing was lost."""
    shares = [link for link in fleet.events if link.is_share]
    lossy = tuple(link for link in shares if link.share > 0)
    return Losses(lossy[:DRAWN], len(shares)) if lossy else None
