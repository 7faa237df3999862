"""The values of a study's trials, in the order in which they were begun, and the best so far."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import TABLE_ROWS, Table, label, paper
from crosswind.dashboards.palette import BLUE, INK, MUTED
from crosswind.dashboards.wording import count, quantity, scalar, times, unit_of
from crosswind.data.schema.trial import ENDED, Configuration, Study, TrialRecord
from crosswind.models.tuner.study.aim import Aim

HEIGHT = 340
DRAWN = 300  # trials, the newest
LOOKS = ((True, "complete", {"color": BLUE}), (False, "beyond a limit", {"color": MUTED, "symbol": "circle-open"}))
FEW = 12  # trials, each of which has a tick: plotly would put some between them


@dataclass(frozen=True)
class TrialValue:
    """A complete trial: its place in the study from 1 on, its configuration, its value, its run.

    `is_within`: it keeps the study's limits, so that it may be the best.
    """

    number: int
    configuration: Configuration
    value: float
    run_id: str | None = None
    is_within: bool = True


@dataclass(frozen=True)
class TrialValues:
    """Complete trials in their order; `unmeasured` are the places of those that ended otherwise."""

    name: ClassVar[str] = "trials"
    objective: str
    unit: str
    is_maximised: bool
    values: tuple[TrialValue, ...]
    unmeasured: tuple[int, ...]

    @cached_property
    def best_so_far(self) -> list[float]:
        """The best value within the limits up to each complete trial, infinite before the first."""
        better, none = (max, -math.inf) if self.is_maximised else (min, math.inf)
        return list(accumulate((trial.value if trial.is_within else none for trial in self.values), better))

    @property
    def title(self) -> str:
        """The finding."""
        within = [trial for trial in self.values if trial.is_within]
        if not within:
            return "No trial keeps the limits"
        first, best = within[0].value, self.best_so_far[-1]
        at = next(trial.number for trial in within if trial.value == best)
        if best == first:
            return f"No trial is better than the first: {quantity(first, self.unit)}"
        gain = best / first if self.is_maximised else first / best if best else None
        better = f", {times(gain)} better than the first" if gain is not None and first * best > 0 else ""
        return f"Trial {at} is the best: {quantity(best, self.unit)}{better}"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        others = f"; {count(len(self.unmeasured), 'trial')} ended without a value" if self.unmeasured else ""
        beyond = sum(not trial.is_within for trial in self.values)
        others += f"; {beyond} beyond a limit" if beyond else ""
        order = "larger" if self.is_maximised else "smaller"
        return f"{self.objective} of {count(len(self.values), 'complete trial')}, {order} is better{others}."

    @property
    def table(self) -> Table:
        """The numbers drawn, the newest last."""
        rows = zip(self.values[-TABLE_ROWS:], self.best_so_far[-TABLE_ROWS:], strict=True)
        cells = [
            (str(trial.number), quantity(trial.value, self.unit), quantity(best, self.unit)) for trial, best in rows
        ]
        return Table(("trial", self.objective, "best so far"), tuple(cells))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        scale, unit = unit_of(*(trial.value for trial in self.values)) if self.unit == "seconds" else (1.0, self.unit)
        of_unit = f", {label(unit)}" if unit else ""
        figure = paper(self.title, height=HEIGHT, x="trial", y=f"{label(self.objective)}{of_unit}")
        shown, best = self.values[-DRAWN:], self.best_so_far[-DRAWN:]
        numbers = [trial.number for trial in shown]
        figure.add_scatter(
            x=numbers,
            y=[value / scale if math.isfinite(value) else None for value in best],
            name="best so far",
            mode="lines",
            line={"color": INK, "width": 1.5, "shape": "hv"},
            hoverinfo="skip",
        )
        for is_within, name, marker in LOOKS:
            trials = [trial for trial in shown if trial.is_within is is_within]
            if trials:
                figure.add_scatter(**_points(trials, scale), name=name, marker={"size": 9, **marker})
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
    values = complete_trials(study, records)
    unmeasured = tuple(
        number
        for number, record in enumerate(records, 1)
        if record.trial.state in ENDED and record.trial.objective is None
    )
    return TrialValues(study.objective, unit, study.is_maximised, values, unmeasured) if values else None


def complete_trials(study: Study, records: Sequence[TrialRecord]) -> tuple[TrialValue, ...]:
    """Return the trials with a value, as it was measured."""
    aim = Aim.of(study)
    return tuple(
        TrialValue(
            *(number, record.trial.configuration, study.signed(record.trial.objective), record.run_id),
            is_within=(judged := aim.judge(record)) is not None and judged.keeps_limits,
        )
        for number, record in enumerate(records, 1)
        if record.trial.objective is not None
    )


def _points(trials: Sequence[TrialValue], scale: float) -> dict[str, object]:
    return {
        "x": [trial.number for trial in trials],
        "y": [trial.value / scale for trial in trials],
        "mode": "markers",
        "customdata": run_links(trials),
        "hovertext": [f"trial {trial.number}: {_described(trial.configuration)}" for trial in trials],
        "hovertemplate": "%{hovertext}<br>%{y:.4~g}<extra></extra>",
    }


def run_links(trials: Sequence[TrialValue]) -> list[list[str] | None]:
    """Return of each trial the run to which its point leads."""
    return [[trial.run_id] if trial.run_id else None for trial in trials]


def _described(configuration: Configuration) -> str:
    return ", ".join(f"{label(name)}={label(scalar(value))}" for name, value in configuration.items())
