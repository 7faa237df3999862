"""The time of the same work over numbers of nodes, with the knee beyond which more nodes gain little."""

from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import TABLE_ROWS, Table, paper
from crosswind.dashboards.palette import BLUE, GREEN, INK, PEER, translucent
from crosswind.dashboards.wording import axis_unit, count, number, percent, seconds
from crosswind.data.schema.answers.advice import ScalePoint, ScalingCurve


@dataclass(frozen=True)
class Scaling:
    """A curve over numbers of nodes, the one that is asked about, and those far from all that ran."""

    name: ClassVar[str] = "scaling"
    curve: ScalingCurve
    nodes: int
    outside: tuple[int, ...]

    @property
    def title(self) -> str:
        """The finding."""
        first, knee = self.curve.points[0], self._point(self.curve.knee)
        far = ", where nothing like it ran" if self.curve.knee in self.outside else ""
        if knee == first:
            verb = "take longer" if self.curve.fastest == first.node_count else "gain little"
            return f"More nodes {verb}: the knee is at {count(knee.node_count, 'node')}{far}"
        gain = f"{number(knee.speedup)}x the speed of {count(first.node_count, 'node')}"
        return f"The knee is at {count(knee.node_count, 'node')}: {gain}, {percent(knee.efficiency)} efficient{far}"

    @property
    def sentence(self) -> str:
        """The figure in words."""
        fastest = self._point(self.curve.fastest)
        far = ", ".join(map(str, self.outside))
        guessed = f"; nothing near {far} ever ran" if self.outside else ""
        return (
            f"Predicted median time over nodes with its 90 % interval; the shortest is {seconds(fastest.seconds)}, "
            f"on {count(fastest.node_count, 'node')}{guessed}."
        )

    @property
    def table(self) -> Table:
        """The points."""
        headers = ("nodes", "run time", "90 % interval", "speedup", "efficiency", "node-hours", "seen")
        return Table(headers, tuple(self._row(point) for point in self.curve.points[:TABLE_ROWS]))

    def _row(self, point: ScalePoint) -> tuple[str, ...]:
        return (
            str(point.node_count),
            seconds(point.seconds),
            f"{seconds(point.low_seconds)} to {seconds(point.high_seconds)}",
            f"{number(point.speedup)}x",
            percent(point.efficiency),
            number(point.node_hours),
            "no" if point.node_count in self.outside else "near",
        )

    def _point(self, nodes: int) -> ScalePoint:
        return next(point for point in self.curve.points if point.node_count == nodes)

    def draw(self) -> Figure:
        """The plotly figure, both axes logarithmic: perfect scaling is a straight line."""
        points = self.curve.points
        scale, unit = axis_unit(*(point.seconds for point in points))
        figure = paper(self.title, height=320, x="nodes", y=f"run time, {unit}")
        nodes = [point.node_count for point in points]
        edges = [point.high_seconds for point in points], [point.low_seconds for point in points][::-1]
        figure.add_scatter(
            x=[*nodes, *nodes[::-1]],
            y=[value / scale for edge in edges for value in edge],
            fill="toself",
            fillcolor=translucent(BLUE, 0.15),
            line={"width": 0},
            mode="lines",
            name="90 % interval",
            hoverinfo="skip",
        )
        first = points[0]
        ideal = [first.seconds * first.node_count / point.node_count / scale for point in points]
        dashes = {"color": PEER, "width": 1.25, "dash": "dash"}
        figure.add_scatter(x=nodes, y=ideal, mode="lines", line=dashes, name="perfect scaling", hoverinfo="skip")
        figure.add_scatter(
            x=nodes,
            y=[point.seconds / scale for point in points],
            mode="lines+markers",
            name="median",
            line={"color": BLUE, "width": 1.75},
            marker={"symbol": ["circle-open" if n in self.outside else "circle" for n in nodes], "size": 8},
            hovertext=[f"{count(p.node_count, 'node')}: {seconds(p.seconds)}" for p in points],
            hovertemplate="%{hovertext}<extra></extra>",
        )
        for place, name, colour, symbol in ((self.curve.knee, "knee", GREEN, "star"), (self.nodes, "asked", INK, "x")):
            if place in nodes:
                figure.add_scatter(
                    x=[place],
                    y=[self._point(place).seconds / scale],
                    mode="markers",
                    name=name,
                    marker={"color": colour, "symbol": symbol, "size": 13 if name == "knee" else 8},
                    hoverinfo="skip",
                )
        ticks = {"tickvals": nodes, "ticktext": [str(node) for node in nodes]}
        return figure.update_xaxes(type="log", **ticks).update_yaxes(type="log", rangemode="normal")


def scaling_plot(curve: ScalingCurve, *, nodes: int, outside: tuple[int, ...]) -> Scaling | None:
    """The figure, or None of one point."""
    return Scaling(curve, nodes, outside) if len(curve.points) > 1 else None
