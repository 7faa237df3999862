"""Figures of a study's parameters: their importance, the values along each, and two of them together."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import TABLE_ROWS, Table, label, paper
from crosswind.dashboards.figures.trials import TrialValue, run_links
from crosswind.dashboards.palette import BLUE, INK, LOW, PEER
from crosswind.dashboards.wording import count, number, quantity, scalar
from crosswind.data.schema.trial import Parameter

HEIGHT, ROW_PIXELS = 340, 26
BARS, PANELS = 20, 6  # parameters that fit
POINTS = 1_500  # of a trace
COLUMNS = 3  # panels side by side, as many as a phone and a sheet of paper have room for
GAP = 0.06  # of a figure's width, between panels
PANEL_PIXELS, NAMES_PIXELS = 260, 96  # the height of a row of panels, and what of it their ticks and names take
NAME_LINES, SHORT_LINE = 3, re.compile(r".{1,13}(?:[-_. ]|$)|.{1,14}")


@dataclass(frozen=True)
class Measured:
    """The complete trials of a study.

    Args:
        objective: Its name.
        unit: Of the objective.
        is_maximised: Whether larger is better.
        trials: In their order.
        logarithmic: Parameters on a logarithmic scale.
        points: Of a trace at most, those of the best trials.
    """

    objective: str
    unit: str
    is_maximised: bool
    trials: tuple[TrialValue, ...]
    logarithmic: frozenset[str] = frozenset()
    points: int = POINTS

    @cached_property
    def best(self) -> TrialValue:
        """The best trial, the earliest of equals."""
        return min(self.trials, key=self._rank)

    @cached_property
    def ranked(self) -> list[TrialValue]:
        """The trials, the best first, those beyond a limit last."""
        return sorted(self.trials, key=self._rank)

    def _rank(self, trial: TrialValue) -> tuple[bool, float]:
        return not trial.is_within, -trial.value if self.is_maximised else trial.value

    def worded(self, value: float) -> str:
        """Return a value with its unit."""
        return quantity(value, "seconds" if self.unit == "s" else self.unit)

    @property
    def axis(self) -> str:
        """The title of an axis of values."""
        return f"{label(self.objective)}{f', {label(self.unit)}' if self.unit else ''}"

    def cut(self, most: int) -> str:
        """Return words about the trials that are not drawn; empty where all are."""
        return f"; the best {most} are drawn" if len(self.trials) > most else ""

    def table(self, parameters: Sequence[str]) -> Table:
        """The values of these parameters, and of the objective, of the best trials."""
        rows = [
            (*(_text(trial.configuration.get(name)) for name in parameters), self.worded(trial.value))
            for trial in self.ranked[:TABLE_ROWS]
        ]
        return Table((*parameters, self.objective), tuple(rows))


@dataclass(frozen=True)
class ImportancePlot:
    """Shares of an objective's variation over the space that follow one parameter alone, largest first."""

    name: ClassVar[str] = "importance"
    objective: str
    shares: tuple[tuple[str, float], ...]
    n_trials: int

    @property
    def title(self) -> str:
        """The finding."""
        name, share = self.shares[0]
        return f"{name} alone explains {share:.0%} of the variation of {self.objective}"

    @property
    def sentence(self) -> str:
        """The figure in words."""
        rest = max(1 - sum(share for _, share in self.shares), 0.0)
        return (
            f"Estimated from {count(self.n_trials, 'complete trial')}; {rest:.0%} follow several parameters together."
        )

    @property
    def table(self) -> Table:
        """The shares."""
        return Table(("parameter", "share"), tuple((name, f"{share:.1%}") for name, share in self.shares[:TABLE_ROWS]))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        shown = self.shares[:BARS][::-1]
        figure = paper(self.title, height=120 + ROW_PIXELS * len(shown), x="share of the variation", y="")
        figure.add_bar(
            x=[share for _, share in shown],
            y=[label(name) for name, _ in shown],
            orientation="h",
            marker={"color": BLUE},
            text=[f"{share:.0%}" for _, share in shown],
            hoverinfo="skip",
        )
        return figure.update_xaxes(tickformat=".0%", range=[0, 1]).update_yaxes(type="category")


@dataclass(frozen=True)
class SlicePlot:
    """The values of all complete trials along each of a few parameters."""

    name: ClassVar[str] = "slices"
    measured: Measured
    parameters: tuple[str, ...]

    @property
    def title(self) -> str:
        """The finding."""
        return _best_words(self.measured, self.parameters)

    @property
    def sentence(self) -> str:
        """The figure in words."""
        trials = count(len(self.measured.trials), "complete trial")
        cut = self.measured.cut(self.measured.points)
        beyond = sum(not trial.is_within for trial in self.measured.trials)
        cut += f"; the {beyond} beyond a limit are hollow" if beyond else ""
        return f"{self.measured.objective} of {trials} along {', '.join(self.parameters)}{cut}."

    @property
    def table(self) -> Table:
        """The best trials."""
        return self.measured.table(self.parameters)

    def draw(self) -> Figure:
        """The plotly figure: one panel a parameter, a few of them side by side, all with the same scale of values."""
        shown = self.parameters[:PANELS]
        grid = _Grid(len(shown))
        figure = paper(self.title, height=grid.height, x="", y=self.measured.axis)
        along, up = figure.layout["xaxis"], figure.layout["yaxis"]
        for row in range(grid.rows):
            below = {"matches": "y"} if row else {}
            figure.update_layout({f"yaxis{_nth(row)}": {**up, "domain": grid.up(row), **below}})
        for place, name in enumerate(shown):
            having = [trial for trial in self.measured.ranked if name in trial.configuration]
            having = having[: self.measured.points]
            values = f"y{_nth(place // COLUMNS)}"
            figure.add_scatter(
                x=[_shown(trial.configuration[name]) for trial in having],
                y=[trial.value for trial in having],
                mode="markers",
                marker={"color": BLUE, "size": 7, "symbol": _symbols(having)},
                xaxis=f"x{_nth(place)}",
                yaxis=values,
                showlegend=False,
                customdata=run_links(having),
                hovertext=[_described(trial) for trial in having],
                hovertemplate="%{hovertext}<br>%{y:.4~g}<extra></extra>",
            )
            title = {**along["title"], "text": _in_lines(name)}
            scale = "log" if name in self.measured.logarithmic else _kind([t.configuration[name] for t in having])
            style = {**along, "title": title, "domain": grid.along(place), "anchor": values, "type": scale}
            figure.update_layout({f"xaxis{_nth(place)}": style})
        return figure


@dataclass(frozen=True)
class _Grid:
    """Places of panels in rows, as shares of a figure."""

    panels: int

    @property
    def rows(self) -> int:
        return -(-self.panels // COLUMNS)

    @property
    def height(self) -> int:
        return HEIGHT - PANEL_PIXELS + PANEL_PIXELS * self.rows

    def along(self, place: int) -> list[float]:
        columns = min(self.panels, COLUMNS)
        column, width = place % COLUMNS, 1 / columns
        return [column * width + (GAP if column else 0.0), (column + 1) * width]

    def up(self, row: int) -> list[float]:
        """Return a row's lower and upper end; below it are the ticks and names of its panels."""
        names = NAMES_PIXELS / self.height
        share = (1 - names * (self.rows - 1)) / self.rows
        top = 1 - row * (share + names)
        return [max(top - share, 0.0), top]


@dataclass(frozen=True)
class ParallelPlot:
    """Every complete trial as a line through its parameters' values; the best tenth stands out."""

    name: ClassVar[str] = "parallel"
    measured: Measured
    parameters: tuple[str, ...]

    @property
    def title(self) -> str:
        """The finding."""
        return _best_words(self.measured, self.parameters)

    @property
    def sentence(self) -> str:
        """The figure in words."""
        return (
            f"A line is one of {count(len(self.measured.trials), 'complete trial')}; "
            f"on each axis the smallest value is at the bottom{self.measured.cut(self._lines_max)}."
        )

    @property
    def table(self) -> Table:
        """The best trials."""
        return self.measured.table(self.parameters)

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        axes = (*self.parameters, self.measured.objective)
        figure = paper(self.title, height=HEIGHT, x="parameters and objective", y="from smallest to largest")
        ranked = self.measured.ranked[: self._lines_max]
        n_best = max(len(ranked) // 10, 1)
        others, best = ("others", ranked[n_best:], PEER, 1.25), ("best tenth", ranked[:n_best], BLUE, 3)
        for name, trials, colour, width in (others, best):
            lines = self._lines(trials)
            figure.add_scatter(
                x=[axis for _ in lines for axis in (*map(label, axes), None)],
                y=[place for line in lines for place in (*line, None)],
                mode="lines+markers",
                name=name,
                line={"color": colour, "width": width},
                customdata=[link for trial in run_links(trials) for link in (*[trial] * len(axes), None)],
                hovertext=[text for trial in trials for text in (*[_described(trial)] * len(axes), "")],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        return figure.update_xaxes(type="category").update_yaxes(showticklabels=False)

    @property
    def _lines_max(self) -> int:
        return self.measured.points // (len(self.parameters) + 2)

    def _lines(self, trials: Sequence[TrialValue]) -> list[tuple[float | None, ...]]:
        """Return of each trial its places on the axes."""
        places, values = self._axes
        return [
            (*(places[name].get(trial.configuration.get(name)) for name in self.parameters), values[trial.value])
            for trial in trials
        ]

    @cached_property
    def _axes(self) -> tuple[Mapping[str, Mapping[Any, float]], Mapping[Any, float]]:
        """The place of each value of each parameter, and of each of the objective."""
        trials = self.measured.trials
        places = {name: _places([trial.configuration.get(name) for trial in trials]) for name in self.parameters}
        return places, _places([trial.value for trial in trials])


@dataclass(frozen=True)
class ContourPlot:
    """The objective over two parameters, averaged over the others, and the complete trials.

    `surface` has a row for each of `second_values` and in it a value for each of `first_values`.
    """

    name: ClassVar[str] = "contour"
    measured: Measured
    parameters: tuple[str, str]
    first_values: tuple[Parameter, ...]
    second_values: tuple[Parameter, ...]
    surface: tuple[tuple[float, ...], ...]

    @property
    def title(self) -> str:
        """The finding."""
        return _best_words(self.measured, self.parameters)

    @property
    def sentence(self) -> str:
        """The figure in words."""
        first, second = self.parameters
        return f"Predicted {self.measured.objective} over {first} and {second}, averaged over the other parameters."

    @property
    def table(self) -> Table:
        """The best trials."""
        return self.measured.table(self.parameters)

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        first, second = self.parameters
        figure = paper(self.title, height=HEIGHT + 80, x=label(first), y=label(second))
        figure.add_contour(
            x=[_shown(value) for value in self.first_values],
            y=[_shown(value) for value in self.second_values],
            z=[list(row) for row in self.surface],
            colorscale=[[0, LOW], [1, BLUE]] if self.measured.is_maximised else [[0, BLUE], [1, LOW]],
            contours={"showlines": False},
            colorbar={"title": {"text": self.measured.axis}},
            hovertemplate="%{z:.4~g}<extra></extra>",
        )
        having = [trial for trial in self.measured.ranked if {first, second} <= trial.configuration.keys()][:POINTS]
        figure.add_scatter(
            x=[_shown(trial.configuration[first]) for trial in having],
            y=[_shown(trial.configuration[second]) for trial in having],
            mode="markers",
            marker={"color": INK, "size": 6},
            showlegend=False,
            hovertext=[f"{_described(trial)}<br>{number(trial.value)}" for trial in having],
            hovertemplate="%{hovertext}<extra></extra>",
        )
        kinds = [
            "log" if name in self.measured.logarithmic else _kind(values)
            for name, values in ((first, self.first_values), (second, self.second_values))
        ]
        return figure.update_xaxes(type=kinds[0]).update_yaxes(type=kinds[1])


def importance_plot(objective: str, shares: Mapping[str, float], n_trials: int) -> ImportancePlot:
    """The plot of shares by parameter, largest first."""
    return ImportancePlot(objective, tuple(shares.items()), n_trials)


def _best_words(measured: Measured, parameters: Sequence[str]) -> str:
    best = measured.best
    if not best.is_within:
        return "No trial keeps the limits"
    words = ", ".join(f"{name} = {_text(best.configuration.get(name))}" for name in parameters[:PANELS])
    return f"The best, {measured.worded(best.value)}, has {words}"


def _symbols(trials: Sequence[TrialValue]) -> str | list[str]:
    """Return a full circle for all, or a hollow one for each trial beyond a limit."""
    is_mixed = not all(trial.is_within for trial in trials)
    return ["circle" if trial.is_within else "circle-open" for trial in trials] if is_mixed else "circle"


def _described(trial: TrialValue) -> str:
    words = (f"{label(name)}={label(_text(value))}" for name, value in trial.configuration.items())
    return f"trial {trial.number}: {', '.join(words)}"


def _text(value: Parameter | None) -> str:
    if value is None:
        return "\u2013"
    return f"{value:.4g}" if isinstance(value, float) else scalar(value)


def _shown(value: Parameter) -> int | float | str:
    """The value as plotly takes it: numbers, and anything else as a text without HTML."""
    return label(str(value)) if isinstance(value, str | bool) else value


def _nth(place: int) -> str:
    """Return what plotly adds to the name of an axis: nothing for the first, 2 for the second."""
    return "" if place == 0 else str(place + 1)


def _in_lines(name: str) -> str:
    """Return a parameter's name in lines as short as a panel on a phone is wide, cut after a few."""
    lines = SHORT_LINE.findall(name)
    return "<br>".join(map(label, lines[:NAME_LINES])) + ("\u2026" if len(lines) > NAME_LINES else "")


def _kind(values: Sequence[Parameter]) -> str:
    return "category" if any(isinstance(value, str | bool) for value in values) else "linear"


def _places(values: Sequence[Any]) -> dict[Any, float]:
    """Return the rank of each value among the different ones, from 0 to 1; not of None, which does not apply."""
    different = sorted({value for value in values if value is not None}, key=lambda one: (str(type(one)), one))
    return {value: place / max(len(different) - 1, 1) for place, value in enumerate(different)}
