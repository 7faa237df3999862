"""The values of a study's trials, in the order in which they were begun, and the best so far."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import TABLE_ROWS, Table, label, paper
from crosswind.dashboards.palette import BLUE, INK, MUTED
from crosswind.dashboards.wording import count, quantity, times, unit_of
from crosswind.data.schema.trial import ENDED, Configuration, Study, TrialRecord

HEIGHT = 340
DRAWN = 300  # trials, the newest
FEW = 12  # trials, each of which has a tick: plotly would put some between them


@dataclass(frozen=True)
class TrialValue:
    """A complete trial: its place in the study from 1 on, its configuration, its value, and its run."""

    number: int
    configuration: Configuration
    value: float
    run_id: str | None = None


@dataclass(frozen=True)
class TrialValues:
    """Complete trials in their order; `unmeasured` are the places of those that ended otherwise."""

    name: ClassVar[str] = "trials"
    objective: str
    unit: str
    is_maximised: bool
    values: tuple[TrialValue, ...]
    unmeasured: tuple[int, ...]

    @property
    def best_so_far(self) -> list[float]:
        """The best value up to each complete trial."""
        return list(accumulate((trial.value for trial in self.values), max if self.is_maximised else min))

    @property
    def title(self) -> str:
        """The finding."""
        first, best = self.values[0].value, self.best_so_far[-1]
        at = next(trial.number for trial in self.values if trial.value == best)
        if best == first:
            return f"No trial is better than the first: {quantity(first, self.unit)}"
        gain = best / first if self.is_maximised else first / best if best else None
        better = f", {times(gain)} better than the first" if gain is not None and first * best > 0 else ""
        return f"Trial {at} is the best: {quantity(best, self.unit)}{better}"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        others = f"; {count(len(self.unmeasured), 'trial')} ended without a value" if self.unmeasured else ""
        order = "larger" if self.is_maximised else "smaller"
        return f"{self.objective} of {count(len(self.values), 'complete trial')}, {order} is better{others}."

    @property
    def table(self) -> Table:
        """The numbers drawn, the newest last."""
        rows = zip(self.values, self.best_so_far, strict=True)
        cells = [
            (str(trial.number), quantity(trial.value, self.unit), quantity(best, self.unit)) for trial, best in rows
        ]
        return Table(("trial", self.objective, "best so far"), tuple(cells[-TABLE_ROWS:]))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        scale, unit = unit_of(*(trial.value for trial in self.values)) if self.unit == "seconds" else (1.0, self.unit)
        of_unit = f", {label(unit)}" if unit else ""
        figure = paper(self.title, height=HEIGHT, x="trial", y=f"{label(self.objective)}{of_unit}")
        shown, best = self.values[-DRAWN:], self.best_so_far[-DRAWN:]
        numbers = [trial.number for trial in shown]
        figure.add_scatter(
            x=numbers,
            y=[value / scale for value in best],
            name="best so far",
            mode="lines",
            line={"color": INK, "width": 1.5, "shape": "hv"},
            hoverinfo="skip",
        )
        figure.add_scatter(
            x=numbers,
            y=[trial.value / scale for trial in shown],
            name="complete",
            mode="markers",
            marker={"color": BLUE, "size": 9},
            customdata=run_links(shown),
            hovertext=[f"trial {trial.number}: {_described(trial.configuration)}" for trial in shown],
            hovertemplate="%{hovertext}<br>%{y:.4~g}<extra></extra>",
        )
        if self.unmeasured:
            worst = (min if self.is_maximised else max)(trial.value for trial in shown)
            figure.add_scatter(
                x=self.unmeasured[-DRAWN:],
                y=[worst / scale] * len(self.unmeasured[-DRAWN:]),
                name="without a value",
                mode="markers",
                marker={"color": MUTED, "size": 9, "symbol": "x-thin", "line": {"color": MUTED, "width": 2}},
                hovertemplate="trial %{x}: without a value<extra></extra>",
            )
        last = max([*numbers, *self.unmeasured])
        return figure.update_xaxes(rangemode="tozero", dtick=1 if last <= FEW else None)


def trial_values(study: Study, records: Sequence[TrialRecord], unit: str) -> TrialValues | None:
    """The study's records, oldest first, with objectives as they were measured; None without a complete one."""
    numbered = list(enumerate(records, 1))
    values = [
        TrialValue(number, record.trial.configuration, study.signed(record.trial.objective), record.run_id)
        for number, record in numbered
        if record.trial.objective is not None
    ]
    unmeasured = tuple(
        number for number, record in numbered if record.trial.state in ENDED and record.trial.objective is None
    )
    return TrialValues(study.objective, unit, study.is_maximised, tuple(values), unmeasured) if values else None


def run_links(trials: Sequence[TrialValue]) -> list[list[str] | None]:
    """Return of each trial the run to which its point leads."""
    return [[trial.run_id] if trial.run_id else None for trial in trials]


def _described(configuration: Configuration) -> str:
    return ", ".join(f"{label(name)}={label(str(value))}" for name, value in configuration.items())
