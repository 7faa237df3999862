"""The share of time in which nodes were sampled, by node and time."""

from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import TABLE_ROWS, Table, label, paper
from crosswind.dashboards.palette import BLUE, INK, LOW, MUTED, VERMILION
from crosswind.dashboards.wording import count, moment, percent, seconds, utc
from crosswind.models.reports.data_health import DataHealth, NodeHealth

MUTED_TEXT = {"size": 13, "color": MUTED}
BAR = {  # of colours
    "title": {"text": "sampled, %", "side": "right", "font": MUTED_TEXT},
    "tickfont": MUTED_TEXT,
    "thickness": 10,
    "outlinewidth": 0,
    "nticks": 3,
}
DRAWN = 60  # nodes, the worst


@dataclass(frozen=True)
class Sampled:
    """The worst of `node_count` nodes, and the share of minutes with a sample in columns from `from_ns` on."""

    name: ClassVar[str] = "sampled"
    nodes: tuple[NodeHealth, ...]
    node_count: int
    from_ns: int
    width_ns: int

    @property
    def title(self) -> str:
        """The finding."""
        worst, full = self.nodes[0], sum(node.share >= 0.995 for node in self.nodes)
        if full == len(self.nodes):
            return f"{count(self.node_count, 'node')} sampled without a gap"
        return f"{worst.node} was sampled in {percent(worst.share)} of the time"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        part = f"the {len(self.nodes)} worst of " if len(self.nodes) < self.node_count else ""
        width = seconds(self.width_ns / 1e9)
        nodes = f"{part}{count(self.node_count, 'node')}"
        return f"Share of minutes with a sample, of {nodes}, in steps of {width}; a cross is none."

    @property
    def table(self) -> Table:
        """The numbers drawn, the worst node first."""
        rows = (
            (node.node, percent(node.share), str(sum(share == 0 for share in node.shares)), utc(node.last_ns))
            for node in self.nodes[:TABLE_ROWS]
        )
        return Table(("node", "sampled", "steps without a sample", "last sample"), tuple(rows))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        figure = paper(self.title, height=min(640, 130 + 20 * len(self.nodes)), x="UTC", y="")
        columns = range(len(self.nodes[0].shares))
        figure.add_heatmap(
            z=[[100 * share for share in node.shares] for node in self.nodes],
            x=[moment(self.from_ns + place * self.width_ns + self.width_ns // 2) for place in columns],
            y=[label(node.node) for node in self.nodes],
            zmin=0,
            zmax=100,
            xgap=1,
            ygap=1,
            colorscale=[[0, VERMILION], [0.01, VERMILION], [0.01, LOW], [1, BLUE]],
            text=[["" if share else "x" for share in node.shares] for node in self.nodes],
            texttemplate="%{text}",
            textfont={"size": 10, "color": INK},
            colorbar=BAR,
            hovertemplate="%{y}, %{x}: sampled in %{z:.0f} % of the time<extra></extra>",
        )
        return figure.update_yaxes(type="category", autorange="reversed", showgrid=False).update_xaxes(showgrid=False)


def sampled_nodes(health: DataHealth) -> Sampled | None:
    """The figure of the worst nodes, or None without any."""
    if not health.nodes:
        return None
    return Sampled(health.nodes[:DRAWN], len(health.nodes), health.from_ns, health.width_ns)
