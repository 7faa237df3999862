"""POP's metrics of a traced run, beside those of earlier runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import Table, label, paper, rounded
from crosswind.dashboards.figures.traces.bars import AROUND_PIXELS, time
from crosswind.dashboards.palette import BLUE, INK, ORANGE, PEER
from crosswind.dashboards.wording import count, number, percent
from crosswind.data.schema.answers.traces import TracedPop
from crosswind.data.schema.words import capital

ROW_PIXELS, NAME_LENGTH = 30, 12
INDENT = "\u2003"
FACTORS: Mapping[str, tuple[str, int]] = {  # metric -> words, depth in the tree of which it is a factor
    "parallel_efficiency": ("parallel efficiency", 0),
    "load_balance": ("load balance", 1),
    "communication_efficiency": ("communication efficiency", 1),
    "serialisation": ("serialisation", 2),
    "transfer": ("transfer", 2),
    "device_communication": ("device communication", 2),
    "orchestration": ("orchestration", 2),
}
FACTORS_WORDS = (
    "Load balance times communication efficiency is parallel efficiency; serialisation times transfer, and on devices "
    "device communication times orchestration, is communication efficiency."
)
ESTIMATED = ("serialisation", "transfer")
BASE: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "runtime_ns": ("runtime", time),
    "ipc": ("instructions a cycle", number),
    "frequency_ghz": ("frequency, GHz", number),
}


@dataclass(frozen=True)
class EarlierPop:
    """An earlier run of the same cohort, and its metrics over the same kind of locations."""

    run_id: str
    pop: TracedPop


@dataclass(frozen=True)
class PopTable:
    """POP's metrics over one or two kinds of locations, the first of them in bars; earlier runs are marks."""

    name: ClassVar[str] = "pop"
    pops: tuple[TracedPop, ...]
    earlier: tuple[EarlierPop, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """The ratios that can be had."""
        return tuple(name for name in FACTORS if any(getattr(pop, name) is not None for pop in self.pops))

    @property
    def title(self) -> str:
        """The finding."""
        first = self.pops[0]
        ratios = {name: getattr(first, name) for name in FACTORS if getattr(first, name) is not None}
        if first.parallel_efficiency is None:
            return f"POP's metrics over {count(len(first.locations), first.over[:-1])}"
        parts = {name: ratio for name, ratio in ratios.items() if name != "parallel_efficiency"}
        efficiency = f"Parallel efficiency {percent(first.parallel_efficiency)}"
        if not parts or first.parallel_efficiency > 0.995:
            return efficiency
        worst = min(parts, key=lambda name: parts[name])
        return f"{efficiency}; its lowest factor is {self._words(worst, first)}, {percent(parts[worst])}"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        over = "; ".join(f"{count(len(pop.locations), pop.over[:-1])}: {_places(pop.locations)}" for pop in self.pops)
        estimated = " Serialisation and transfer are estimated by a replay." if self._is_estimated else ""
        earlier = f" Marks in grey are {count(len(self.earlier), 'earlier run')} of the cohort." if self.earlier else ""
        return f"POP's metrics over {over}. {FACTORS_WORDS}{estimated}{earlier}"

    @property
    def table(self) -> Table:
        """The numbers drawn, a row a metric."""
        columns = [*self.pops, *(one.pop for one in self.earlier)]
        headers = [f"over {pop.over}" for pop in self.pops] + [f"earlier: {one.run_id}" for one in self.earlier]
        rows = [
            (
                INDENT * FACTORS[name][1] + self._words(name, self.pops[0]),
                *(percent(getattr(pop, name)) for pop in columns),
            )
            for name in self.metrics
        ]
        for name, (said, shown) in BASE.items():
            if any(getattr(pop, name) is not None for pop in self.pops):
                values = [getattr(pop, name) for pop in columns]
                rows.append((said, *("\u2013" if value is None else shown(value) for value in values)))
        return Table(("metric", *headers), tuple(rows))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        height = 30 + AROUND_PIXELS + ROW_PIXELS * len(self.metrics)
        figure = paper(self.title, height=height, x="ratio, %", y="")
        first, *others = self.pops
        rows = list(range(len(self.metrics)))
        figure.add_bar(
            orientation="h",
            y=rows,
            x=self._ratios(first),
            name=f"over {first.over}",
            marker={"color": BLUE, "line": {"width": 0}},
            hovertext=[f"{self._words(name, first)}: {percent(getattr(first, name))}" for name in self.metrics],
            hoverinfo="text",
            width=0.5,
        )
        marks = [(f"over {pop.over}", pop, ORANGE, "diamond") for pop in others]
        marks += [(f"earlier: {label(one.run_id[-NAME_LENGTH:])}", one.pop, PEER, "circle") for one in self.earlier]
        for name, pop, colour, symbol in marks:
            figure.add_scatter(
                x=self._ratios(pop),
                y=rows,
                name=name,
                mode="markers",
                marker={"color": colour, "size": 10, "symbol": symbol, "line": {"width": 1, "color": INK}},
                hovertext=[f"{name}, {self._words(one, pop)}: {percent(getattr(pop, one))}" for one in self.metrics],
                hoverinfo="text",
            )
        figure.update_xaxes(range=[0, 104])
        ticks = [capital(self._words(name, first)) for name in self.metrics]
        edge = len(rows) - 0.4
        return figure.update_yaxes(
            tickvals=rows, ticktext=ticks, range=[edge, -0.6], showgrid=False, tickfont={"color": INK}, fixedrange=True
        )

    @property
    def _is_estimated(self) -> bool:
        return any(pop.estimated for pop in self.pops)

    def _words(self, name: str, pop: TracedPop) -> str:
        return FACTORS[name][0] + (" (estimated)" if name in ESTIMATED and pop.estimated else "")

    def _ratios(self, pop: TracedPop) -> list[float | None]:
        return rounded([getattr(pop, name) for name in self.metrics], 0.01)


def _places(locations: Sequence[str]) -> str:
    return locations[0] if len(locations) == 1 else f"{locations[0]} to {locations[-1]}"


def pop_table(pops: Sequence[TracedPop], earlier: Sequence[EarlierPop] = ()) -> PopTable | None:
    """Return the figure; None without locations whose metrics can be had."""
    there = tuple(pop for pop in pops if any(getattr(pop, name) is not None for name in FACTORS))
    return PopTable(there, tuple(earlier)) if there else None
