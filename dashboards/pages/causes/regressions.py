"""The Regressions page: workloads that became slower or faster for good, and simultaneous changes of facts."""

from collections.abc import Sequence
from dataclasses import dataclass

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.levels import levels_plot
from crosswind.dashboards.pages.page import CAUSES, RUN, Page, PageQuery, Place
from crosswind.dashboards.pages.scope import Scope, scope_of
from crosswind.dashboards.wording import count, times, utc
from crosswind.data.schema.answers.stragglers import ChangedFact, Regression, Regressions
from crosswind.data.schema.run import RunState
from crosswind.models.stragglers.history import history

MOST_SHOWN = 50  # changes, the newest


@dataclass(frozen=True)
class RegressionsView:
    """The page's contents; of `total` changes the newest are in `changes`."""

    sentence: str
    scope: Scope
    runs: int
    workloads: int
    total: int
    slower: int
    changes: tuple[Regression, ...]
    drawn: tuple[str, str] | None  # system and workload of the figure
    too_few: tuple[str, ...]
    warnings: tuple[str, ...]
    charts: tuple[Chart, ...]
    next_place: Place | None = None

    title = "Regressions"

    @property
    def is_empty(self) -> bool:
        """Return whether too little is stored for the page."""
        return not self.workloads


def view(client: Local, query: PageQuery) -> RegressionsView:
    """Return lasting changes, the newest first, and the runs of one workload."""
    scope = scope_of(client, query, RunState.COMPLETED)
    if not scope.runs:
        return RegressionsView("", scope, 0, 0, 0, 0, (), None, (), (), ())
    since_ns = query.since_hour_ns
    answer = client.regressions(scope.system, scope.workload, since_ns=since_ns)
    drawn = _drawn(answer, scope)
    chart = None if drawn is None else levels_plot(client.compute(client.store, history, *drawn, since_ns=since_ns))
    return RegressionsView(
        sentence=_sentence(answer),
        scope=scope,
        runs=answer.runs,
        workloads=answer.workloads,
        total=len(answer.changes),
        slower=sum(change.ratio > 1 for change in answer.changes),
        changes=answer.changes[:MOST_SHOWN],
        drawn=drawn if chart else None,
        too_few=answer.too_few[:MOST_SHOWN],
        warnings=answer.warnings,
        charts=() if chart is None else (chart,),
    )


PAGE = Page(
    "regressions",
    "/regressions",
    "regressions.html",
    view,
    CAUSES,
    label="Regressions",
    table="changes",
    fill=RUN,
    hint="Run it now and then: a change takes ten runs",
)


def _drawn(answer: Regressions, scope: Scope) -> tuple[str, str] | None:
    """Return system and workload of the newest change; those of the query if nothing changed."""
    if answer.changes:
        newest = next((change for change in answer.changes if change.ratio > 1), answer.changes[0])
        return newest.system, newest.workload
    workload = scope.workload or (scope.workloads[0] if len(scope.workloads) == 1 else None)
    system = scope.system or (scope.systems[0] if len(scope.systems) == 1 else None)
    return (system, workload) if workload and system else None


def _sentence(answer: Regressions) -> str:
    looked = count(answer.workloads, "workload")
    if answer.workloads == len(answer.too_few):
        return "No workload has enough runs to detect a lasting change."
    if not answer.changes:
        return f"Nothing changed for good in {looked}, over {count(answer.runs, 'run')}."
    slower = [change for change in answer.changes if change.ratio > 1]
    if not slower:
        newest = answer.changes[0]
        return f"Nothing became slower for good in {looked}; {newest.workload} became faster, {times(newest.ratio)}."
    newest = slower[0]
    since = f"has taken {times(newest.ratio)} its time since {utc(newest.since_ns)[:10]}"
    return f"{newest.workload} on {newest.system} {since}{_because(newest.suspects)}."


def _because(suspects: Sequence[ChangedFact]) -> str:
    return f"; {suspects[0].fact} changed just then" if suspects else "; no recorded fact changed just then"
