"""Trials of a study with several objectives: two of these, and the front that no other trial beats in both."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import TABLE_ROWS, Table, label, paper
from crosswind.dashboards.palette import BLUE, PEER
from crosswind.dashboards.wording import count, number
from crosswind.data.schema.trial import Study, TrialRecord
from crosswind.models.tuner.study.aim import Aim

DRAWN = 300  # trials, the newest


@dataclass(frozen=True)
class Weighed:
    """A trial by its number, the run that measured it, and its first two objectives."""

    number: int
    run_id: str | None
    first: float
    second: float
    is_on_front: bool


@dataclass(frozen=True)
class Front:
    """Complete trials within the limits; `objectives` are the two in the words of the study."""

    name: ClassVar[str] = "front"
    objectives: tuple[str, str]
    trials: tuple[Weighed, ...]

    @property
    def front(self) -> list[Weighed]:
        """The trials on the front, by the first objective."""
        return sorted((trial for trial in self.trials if trial.is_on_front), key=lambda trial: trial.first)

    @property
    def title(self) -> str:
        """The finding."""
        first, second = (words.removeprefix("minimise ").removeprefix("maximise ") for words in self.objectives)
        trials = count(len(self.front), "trial")
        return (
            f"{trials} trade {first} for {second}"
            if len(self.front) > 1
            else f"One trial is best in {first} and {second}"
        )

    @property
    def sentence(self) -> str:
        """The figure in words."""
        return f"{count(len(self.trials), 'complete trial')} within the limits; no other one beats those on the line."

    @property
    def table(self) -> Table:
        """The front."""
        rows = ((str(one.number), number(one.first), number(one.second)) for one in self.front[:TABLE_ROWS])
        return Table(("trial", *self.objectives), tuple(rows))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        first, second = map(label, self.objectives)
        figure = paper(self.title, height=340, x=first, y=second)
        others = [trial for trial in self.trials if not trial.is_on_front][-DRAWN:]
        figure.add_scatter(**_marks(others), name="others", mode="markers", marker={"color": PEER, "size": 7})
        line = {"color": BLUE, "width": 1.5, "shape": "hv"}
        marker = {"color": BLUE, "size": 10, "symbol": "diamond"}
        shown = {"name": "on the front", "mode": "lines+markers", "line": line, "marker": marker}
        return figure.add_scatter(**_marks(self.front[:DRAWN]), **shown)


def _marks(trials: Sequence[Weighed]) -> dict[str, object]:
    return {
        "x": [trial.first for trial in trials],
        "y": [trial.second for trial in trials],
        "customdata": [[trial.run_id] if trial.run_id else None for trial in trials],
        "hovertext": [f"trial {trial.number}" for trial in trials],
        "hovertemplate": "%{hovertext}: %{x:.4~g}, %{y:.4~g}<extra></extra>",
    }


def front_plot(study: Study, records: Sequence[TrialRecord]) -> Front | None:
    """The figure, or None with one objective or without a trial within the limits."""
    aim = Aim.of(study)
    if aim.goal is None or len(aim.goal.objectives) < 2:
        return None
    best = {record.trial_id for record in aim.ranked(records).front}
    signs = [-1.0 if objective.is_maximised else 1.0 for objective in aim.goal.objectives]
    judged = ((place, record, aim.judge(record)) for place, record in enumerate(records, 1))
    trials = tuple(
        Weighed(
            place,
            record.run_id,
            signs[0] * judgement.objectives[0],
            signs[1] * judgement.objectives[1],
            record.trial_id in best,
        )
        for place, record, judgement in judged
        if judgement and judgement.keeps_limits
    )
    first, second = (objective.text for objective in aim.goal.objectives[:2])
    return Front((first, second), trials) if trials else None
