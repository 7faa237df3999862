"""The Counters page: counters of the nodes that go with slow runs."""

from dataclasses import dataclass

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.effects import Effect, effects_plot
from crosswind.dashboards.pages.page import CAUSES, RUN, Page, PageQuery, Place
from crosswind.dashboards.pages.scope import Scope, scope_of
from crosswind.dashboards.wording import count, number, percent, times
from crosswind.data.schema.answers.effects import CounterEffect, CounterRanking
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import RunState
from crosswind.models.association.design import RUNS_MIN

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
    """The page's contents; of `tested` counters the first are in the rows, with `show` all also those left out.

    `following` ones only follow the run's length, and are no evidence.
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

    @property
    def is_empty(self) -> bool:
        """Return whether too little is stored for the page."""
        return not self.tested


def view(client: Local, query: PageQuery) -> CountersView:
    """Return the ranking of counters for a workload, or for all. Raises: InvalidInputError for a bad query."""
    show, limit = query.choice("show", SHOWS) or SHOWS[0], query.amount("limit", SHOWN, most=MOST_SHOWN)
    scope = scope_of(client, query, RunState.COMPLETED)
    if not scope.runs:
        return _nothing(scope, show)
    try:
        ranking = client.counters(scope.workload, scope.system, since_ns=query.since_hour_ns)
    except InvalidInputError as error:  # none of the stored runs has a time
        return _nothing(scope, show, "No counter can be ranked yet.", str(error))
    informative = [counter for counter in ranking.counters if not counter.follows_duration]
    listed = informative if show == SHOWS[0] else ranking.counters
    return CountersView(
        sentence=_sentence(ranking, informative),
        scope=scope,
        system=ranking.system,
        compared_runs=ranking.compared_runs,
        runs=ranking.runs,
        sampled=ranking.sampled,
        constant=ranking.constant,
        tested=len(ranking.counters),
        following=len(ranking.counters) - len(informative),
        mattering=len(ranking.mattering),
        show=show,
        rows=tuple(map(_row, listed[:limit])),
        warnings=ranking.warnings,
        from_ns=ranking.from_ns,
        to_ns=ranking.to_ns,
        charts=_charts(informative),
    )


PAGE = Page(
    "counters",
    "/counters",
    "counters.html",
    view,
    CAUSES,
    label="Counters",
    table="rows",
    fill=RUN,
    hint="Run each configuration four times or more",
)


def _nothing(scope: Scope, show: str, sentence: str = "", *warnings: str) -> CountersView:
    return CountersView(sentence, scope, None, 0, 0, 0, 0, 0, 0, 0, show, (), warnings, None, None, ())


def _row(effect: CounterEffect) -> CounterRow:
    return CounterRow(effect.shown.name, effect.shown.description, effect, effect.matters)


def _sentence(ranking: CounterRanking, informative: list[CounterEffect]) -> str:
    if not ranking.counters and not ranking.sampled and ranking.compared_runs >= RUNS_MIN:
        return f"No counter can be ranked yet: nothing was sampled during {count(ranking.compared_runs, 'run')}."
    if not ranking.counters:
        return f"No counter can be ranked yet: {ranking.compared_runs} of {count(ranking.runs, 'run')} can be compared."
    tested = count(len(ranking.counters), "counter")
    if not ranking.mattering:
        return f"None of {tested} goes with slow runs beyond chance."
    first = informative[0]
    way = "high" if first.rho > 0 else "low"
    go = "goes" if len(ranking.mattering) == 1 else "go"
    most = f"most clearly {first.shown.name}, {way} in them"
    return f"{len(ranking.mattering)} of {tested} {go} with slow runs; {most}."


def _charts(informative: list[CounterEffect]) -> tuple[Chart, ...]:
    effects = [
        Effect(
            counter.shown.name,
            counter.deviation_ratio,
            counter.deviation_low_ratio,
            counter.deviation_high_ratio,
            counter.matters,
            f"q {number(counter.q)}, among the first ten in {percent(counter.stability)} of replicates",
        )
        for counter in informative
    ]
    if not effects:
        return ()
    first = effects[0]
    finding = f"Runs take {times(first.ratio)} as long for a standard deviation more of {first.name}"
    verdicts = ("goes with slow runs", "may be chance")
    chart = effects_plot(effects, finding=finding, axis="times as long per deviation", verdicts=verdicts)
    return () if chart is None else (chart,)
