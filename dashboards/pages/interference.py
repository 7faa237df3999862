"""The Neighbours page: who was beside runs that were slow, by pseudonym."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.dose import DoseLine, dose_plot
from crosswind.dashboards.figures.effects import Effect, effects_plot
from crosswind.dashboards.pages.page import Asked, Page, Place, Sources
from crosswind.dashboards.pages.scope import Scope, scope_of
from crosswind.dashboards.wording import count, number, times
from crosswind.data.errors import InvalidInputError
from crosswind.data.run import RunState
from crosswind.models.interference.exposure import Candidate
from crosswind.models.interference.exposure import Scope as Where
from crosswind.models.interference.interference import Interference, interference
from crosswind.models.interference.suspects import Suspect

SHOWN, MOST_SHOWN = 25, 400
VERDICTS = ("slows runs", "is not shown to")


@dataclass(frozen=True)
class NeighbourRow:
    """One line of the table; who is not `is_blamed` is not shown to slow anybody down."""

    name: str
    suspect: Suspect
    explained_by: str | None
    is_blamed: bool


@dataclass(frozen=True)
class InterferenceView:
    """What the page shows; of `told` neighbours the surest are in the rows."""

    sentence: str
    scope: Scope
    system: str | None
    compared_runs: int
    runs: int
    accompanied_runs: int
    seen: Mapping[str, int]
    candidates: int
    inseparable: int
    told: int
    blamed: int
    rows: tuple[NeighbourRow, ...]
    warnings: tuple[str, ...]
    from_ns: int | None
    to_ns: int | None
    charts: tuple[Chart, ...]
    next_place: Place | None = None

    title = "Neighbours"


def view(sources: Sources, asked: Asked) -> InterferenceView:
    """Who goes with slow runs of a workload, or of all. Raises: InvalidInputError for a query that cannot be meant."""
    limit = asked.amount("limit", SHOWN, most=MOST_SHOWN)
    scope = scope_of(sources, asked, RunState.COMPLETED)
    if not scope.runs:
        return _nothing(scope)
    try:
        found = sources.ask(interference, scope.workload, scope.system)
    except InvalidInputError as error:  # runs are there, of which none tells its time
        return _nothing(scope, "Nobody can be judged yet.", str(error))
    return InterferenceView(
        sentence=_sentence(found),
        scope=scope,
        system=found.system,
        compared_runs=found.compared_runs,
        runs=found.runs,
        accompanied_runs=found.accompanied_runs,
        seen={str(kind): seen for kind, seen in found.seen.items()},
        candidates=found.candidates,
        inseparable=found.inseparable,
        told=len(found.suspects),
        blamed=len(found.blamed),
        rows=tuple(map(_row, found.suspects[:limit])),
        warnings=found.warnings,
        from_ns=found.from_ns,
        to_ns=found.to_ns,
        charts=_charts(found),
    )


PAGE = Page("interference", "/interference", "interference.html", view, label="Neighbours", section="interference")


def _nothing(scope: Scope, sentence: str = "", *warnings: str) -> InterferenceView:
    return InterferenceView(sentence, scope, None, 0, 0, 0, {}, 0, 0, 0, 0, (), warnings, None, None, ())


def _row(suspect: Suspect) -> NeighbourRow:
    by = None if suspect.rides_with is None else _name(suspect.rides_with)
    return NeighbourRow(_name(suspect.candidate), suspect, by, suspect.is_blamed)


def _name(candidate: Candidate) -> str:
    where = "" if candidate.scope is Where.NODE else " on the same switch"
    return f"{candidate.kind} {candidate.name}{where}"


def _sentence(found: Interference) -> str:
    if not found.suspects:
        return f"Nobody can be judged yet: {count(found.accompanied_runs, 'run')} had somebody beside."
    if not found.blamed:
        return f"Nobody is shown to slow runs down, of {count(len(found.suspects), 'neighbour')} tested."
    worst = max(found.blamed, key=lambda each: each.slowdown_ratio)
    others = f"; {len(found.blamed) - 1} more are held to slow runs down" if len(found.blamed) > 1 else ""
    took = f"{times(worst.slowdown_ratio)} [{number(worst.slowdown_low_ratio)} to {number(worst.slowdown_high_ratio)}]"
    return f"Runs beside {_name(worst.candidate)} took {took} the time{others}."


def _charts(found: Interference) -> tuple[Chart, ...]:
    effects = [
        Effect(
            _name(each.candidate),
            each.slowdown_ratio,
            each.slowdown_low_ratio,
            each.slowdown_high_ratio,
            each.is_blamed,
            f"q {number(each.q)}, beside {count(each.exposed_runs, 'run')}",
        )
        for each in found.suspects
    ]
    finding = f"{len(found.blamed)} of {count(len(found.suspects), 'neighbour')} surely go with slower runs"
    axis = "time of runs beside it over that of runs without it"
    charts = (effects_plot(effects, finding=finding, axis=axis, verdicts=VERDICTS), dose_plot(_doses(found)))
    return tuple(chart for chart in charts if chart is not None)


def _doses(found: Interference) -> Sequence[DoseLine]:
    return [
        DoseLine(
            _name(each.candidate),
            (each.dose.low_ratio, each.dose.middle_ratio, each.dose.high_ratio),
            each.dose.is_rising,
        )
        for each in found.blamed
        if each.dose is not None
    ]
