"""The Neighbours page: neighbours of slow runs, users by pseudonym."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.dose import DoseLine, dose_plot
from crosswind.dashboards.figures.effects import Effect, effects_plot
from crosswind.dashboards.pages.page import CAUSES, Page, PageQuery, Place
from crosswind.dashboards.pages.scope import Scope, scope_of
from crosswind.dashboards.wording import count, number, times
from crosswind.data.schema.answers.effects import Interference, Neighbour, NeighbourEffect, NeighbourScope
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import RunState

SHOWN, MOST_SHOWN = 25, 400
VERDICTS = ("slows runs", "is not shown to")


@dataclass(frozen=True)
class NeighbourRow:
    """One line of the table; there is no evidence against a neighbour that is not `is_blamed`."""

    name: str
    suspect: NeighbourEffect
    explained_by: str | None
    is_blamed: bool


@dataclass(frozen=True)
class InterferenceView:
    """The page's contents; of `total` neighbours the surest are in the rows."""

    sentence: str
    scope: Scope
    system: str | None
    compared_runs: int
    runs: int
    accompanied_runs: int
    seen: Mapping[str, int]
    candidates: int
    inseparable: int
    total: int
    blamed: int
    rows: tuple[NeighbourRow, ...]
    warnings: tuple[str, ...]
    from_ns: int | None
    to_ns: int | None
    charts: tuple[Chart, ...]
    next_place: Place | None = None

    title = "Neighbours"

    @property
    def is_empty(self) -> bool:
        """Return whether too little is stored for the page."""
        return not self.total


def view(client: Local, query: PageQuery) -> InterferenceView:
    """Return the neighbours of slow runs of a workload, or of all. Raises: InvalidInputError for a bad query."""
    limit = query.amount("limit", SHOWN, most=MOST_SHOWN)
    scope = scope_of(client, query, RunState.COMPLETED)
    if not scope.runs:
        return _nothing(scope)
    try:
        answer = client.interference(scope.workload, scope.system, since_ns=query.since_hour_ns)
    except InvalidInputError as error:  # none of the stored runs has a time
        return _nothing(scope, "No neighbour can be judged yet.", str(error))
    return InterferenceView(
        sentence=_sentence(answer),
        scope=scope,
        system=answer.system,
        compared_runs=answer.compared_runs,
        runs=answer.runs,
        accompanied_runs=answer.accompanied_runs,
        seen={str(kind): seen for kind, seen in answer.seen.items()},
        candidates=answer.candidates,
        inseparable=answer.inseparable,
        total=len(answer.suspects),
        blamed=len(answer.blamed),
        rows=tuple(map(_row, answer.suspects[:limit])),
        warnings=answer.warnings,
        from_ns=answer.from_ns,
        to_ns=answer.to_ns,
        charts=_charts(answer),
    )


PAGE = Page(
    "interference",
    "/interference",
    "interference.html",
    view,
    CAUSES,
    label="Neighbours",
    table="rows",
    fill="crosswind sync slurm",
    hint="Store the scheduler's jobs",
)


def _nothing(scope: Scope, sentence: str = "", *warnings: str) -> InterferenceView:
    return InterferenceView(sentence, scope, None, 0, 0, 0, {}, 0, 0, 0, 0, (), warnings, None, None, ())


def _row(suspect: NeighbourEffect) -> NeighbourRow:
    by = None if suspect.rides_with is None else _name(suspect.rides_with)
    return NeighbourRow(_name(suspect.candidate), suspect, by, suspect.is_blamed)


def _name(candidate: Neighbour) -> str:
    where = "" if candidate.scope is NeighbourScope.NODE else " on the same switch"
    return f"{candidate.kind} {candidate.name}{where}"


def _sentence(answer: Interference) -> str:
    if not answer.suspects:
        return f"No neighbour can be judged yet: {count(answer.accompanied_runs, 'run')} had neighbours."
    if not answer.blamed:
        return f"None of {count(len(answer.suspects), 'neighbour')} tested is shown to slow runs down."
    worst = max(answer.blamed, key=lambda suspect: suspect.slowdown_ratio)
    others = f"; {len(answer.blamed) - 1} more are shown to slow runs down" if len(answer.blamed) > 1 else ""
    took = f"{times(worst.slowdown_ratio)} [{number(worst.slowdown_low_ratio)} to {number(worst.slowdown_high_ratio)}]"
    return f"Runs next to {_name(worst.candidate)} took {took} the time{others}."


def _charts(answer: Interference) -> tuple[Chart, ...]:
    effects = [
        Effect(
            _name(suspect.candidate),
            suspect.slowdown_ratio,
            suspect.slowdown_low_ratio,
            suspect.slowdown_high_ratio,
            suspect.is_blamed,
            f"q {number(suspect.q)}, next to {count(suspect.exposed_runs, 'run')}",
        )
        for suspect in answer.suspects
    ]
    finding = f"{len(answer.blamed)} of {count(len(answer.suspects), 'neighbour')} go with slower runs"
    axis = "time of runs next to it over that of runs without it"
    charts = (effects_plot(effects, finding=finding, axis=axis, verdicts=VERDICTS), dose_plot(_doses(answer)))
    return tuple(chart for chart in charts if chart is not None)


def _doses(answer: Interference) -> Sequence[DoseLine]:
    return [
        DoseLine(
            _name(suspect.candidate),
            (suspect.dose.low_ratio, suspect.dose.middle_ratio, suspect.dose.high_ratio),
            suspect.dose.is_rising,
        )
        for suspect in answer.blamed
        if suspect.dose is not None
    ]
