"""The Counters page: which counters of the nodes go with slow runs."""

from dataclasses import dataclass

from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.effects import Effect, effects_plot
from crosswind.dashboards.pages.page import Asked, Page, Place, Sources
from crosswind.dashboards.pages.scope import Scope, scope_of
from crosswind.dashboards.wording import count, number, percent, times
from crosswind.data.errors import InvalidInputError
from crosswind.data.run import RunState
from crosswind.models.association.design import RUNS_MIN
from crosswind.models.counters.counters import CounterEffect, CounterRanking, counters

SHOWN, MOST_SHOWN = 25, 500
SHOWS = ("tested", "all")


@dataclass(frozen=True)
class CounterRow:
    """One line of the table."""

    name: str
    description: str
    effect: CounterEffect
    matters: bool


@dataclass(frozen=True)
class CountersView:
    """What the page shows; of `tested` counters the first are in the rows, with `show` all also those left out.

    `following` ones only follow the run's length, and say nothing.
    """

    sentence: str
    scope: Scope
    system: str | None
    compared_runs: int
    runs: int
    sampled: int
    constant: int
    tested: int
    following: int
    mattering: int
    show: str
    rows: tuple[CounterRow, ...]
    warnings: tuple[str, ...]
    from_ns: int | None
    to_ns: int | None
    charts: tuple[Chart, ...]
    next_place: Place | None = None

    title = "Counters"


def view(sources: Sources, asked: Asked) -> CountersView:
    """The ranking of a workload's counters, or of all. Raises: InvalidInputError for a query that cannot be meant."""
    show, limit = asked.choice("show", SHOWS) or SHOWS[0], asked.amount("limit", SHOWN, most=MOST_SHOWN)
    scope = scope_of(sources, asked, RunState.COMPLETED)
    if not scope.runs:
        return _nothing(scope, show)
    try:
        found = sources.ask(counters, scope.workload, scope.system)
    except InvalidInputError as error:  # runs are there, of which none tells its time
        return _nothing(scope, show, "No counter can be ranked yet.", str(error))
    told = [each for each in found.counters if not each.follows_duration]
    listed = told if show == SHOWS[0] else found.counters
    return CountersView(
        sentence=_sentence(found, told),
        scope=scope,
        system=found.system,
        compared_runs=found.compared_runs,
        runs=found.runs,
        sampled=found.sampled,
        constant=found.constant,
        tested=len(found.counters),
        following=len(found.counters) - len(told),
        mattering=len(found.mattering),
        show=show,
        rows=tuple(map(_row, listed[:limit])),
        warnings=found.warnings,
        from_ns=found.from_ns,
        to_ns=found.to_ns,
        charts=_charts(told),
    )


PAGE = Page("counters", "/counters", "counters.html", view, label="Counters", section="counters")


def _nothing(scope: Scope, show: str, sentence: str = "", *warnings: str) -> CountersView:
    return CountersView(sentence, scope, None, 0, 0, 0, 0, 0, 0, 0, show, (), warnings, None, None, ())


def _row(effect: CounterEffect) -> CounterRow:
    return CounterRow(effect.shown.name, effect.shown.description, effect, effect.matters)


def _sentence(found: CounterRanking, told: list[CounterEffect]) -> str:
    if not found.counters and not found.sampled and found.compared_runs >= RUNS_MIN:
        return f"No counter can be ranked yet: nothing was sampled during {count(found.compared_runs, 'run')}."
    if not found.counters:
        return f"No counter can be ranked yet: {found.compared_runs} of {count(found.runs, 'run')} can be compared."
    tested = count(len(found.counters), "counter")
    if not found.mattering:
        return f"None of {tested} goes with slow runs beyond luck."
    first = told[0]
    way = "high" if first.rho > 0 else "low"
    goes = "goes" if len(found.mattering) == 1 else "go"
    return f"{len(found.mattering)} of {tested} {goes} with slow runs; most surely {first.shown.name}, {way} in them."


def _charts(told: list[CounterEffect]) -> tuple[Chart, ...]:
    effects = [
        Effect(
            each.shown.name,
            each.deviation_ratio,
            each.deviation_low_ratio,
            each.deviation_high_ratio,
            each.matters,
            f"q {number(each.q)}, among the first ten in {percent(each.stability)} of replicates",
        )
        for each in told
    ]
    if not effects:
        return ()
    first = effects[0]
    finding = f"Runs take {times(first.ratio)} as long for a standard deviation more of {first.name}"
    verdicts = ("goes with slow runs", "may be luck")
    chart = effects_plot(effects, finding=finding, axis="times as long per deviation", verdicts=verdicts)
    return () if chart is None else (chart,)
