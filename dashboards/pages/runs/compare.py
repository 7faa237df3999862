"""The Compare page: by what one run took longer than another, or than the rest of its cohort."""

from dataclasses import dataclass

from crosswind.client.local import Local
from crosswind.client.run_names import run_named
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.compare.quantiles import QuantileShift, step_quantiles
from crosswind.dashboards.figures.waterfall import waterfall, waterfall_between
from crosswind.dashboards.pages.page import RUN, RUNS, Page, PageQuery, Place
from crosswind.dashboards.pages.runs.differences import (
    CounterDifference,
    FactDifference,
    Recorded,
    fact_differences,
    recorded,
)
from crosswind.data.catalog.judged_runs import VerdictFilter
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.explanations import CauseShare, Comparison, Explanation, Interval, Verdict
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Run, RunState
from crosswind.models.explain.compare import difference_words

PEERS = 10  # runs of the cohort nearest in time, whose steps, facts and counters stand for it
SUGGESTED = 5
SHOWN, MOST_SHOWN = 25, 500
COHORT = "its cohort"


@dataclass(frozen=True)
class Suggestion:
    """A slow run, and another of its cohort that is not among the newest slow ones, if there is one."""

    run: Run
    other: Run | None


@dataclass(frozen=True)
class CompareView:
    """The page's contents; without `a` the form alone, and without `b` about A and its cohort.

    Of two runs there is a comparison, of a run and its cohort an explanation; where neither can be, `reason` says why.
    """

    sentence: str
    a: Run | None
    b: Run | None
    peers: int
    comparison: Comparison | None
    explanation: Explanation | None
    reason: str | None
    differing: tuple[FactDifference, ...]
    alike_facts: int
    counters: tuple[CounterDifference, ...]
    differing_counters: int
    alike_counters: int
    suggested: tuple[Suggestion, ...]
    charts: tuple[Chart, ...]
    next_place: Place | None = None
    has_runs: bool = True

    title = "Compare"

    @property
    def is_empty(self) -> bool:
        """Return whether too little is stored for the page."""
        return not self.has_runs

    @property
    def slower(self) -> Run | None:
        """The run that took longer a step, or the one that is compared with its cohort."""
        is_b = self.comparison is not None and self.b is not None and self.comparison.slower == self.b.run_id
        return self.b if is_b else self.a

    @property
    def shares(self) -> tuple[CauseShare, ...]:
        """The parts that causes took, with their evidence."""
        answer = self.comparison or self.explanation
        return answer.shares if answer else ()

    @property
    def unexplained(self) -> Interval | None:
        """The part without evidence."""
        answer = self.comparison or self.explanation
        return answer.unexplained if answer else None


def view(client: Local, query: PageQuery) -> CompareView:
    """Return two runs, or one and its cohort, side by side. Raises: NotFoundError, InvalidInputError."""
    limit, names = query.amount("limit", SHOWN, most=MOST_SHOWN), _names(query)
    if not names:
        return _form(client)
    a, *rest = (_run(client, name) for name in names)
    b = rest[0] if rest else None
    others = [b] if b else _peers(client, a)
    explanation = None if b else client.explain_runs(client.store, [a])[a.run_id]
    comparison, reason = _compared(client, a, b) if b else (None, None)
    measured = client.compute(client.store, recorded, a.run_id, tuple(run.run_id for run in others))
    differing, alike = fact_differences(a, others) if others else ((), 0)
    counters = [one for one in measured.counters if not one.is_alike]
    return CompareView(
        sentence=_sentence(a, comparison, explanation),
        a=a,
        b=b,
        peers=0 if b else len(others),
        comparison=comparison,
        explanation=explanation,
        reason=reason,
        differing=differing,
        alike_facts=alike,
        counters=tuple(counters[:limit]),
        differing_counters=len(counters),
        alike_counters=len(measured.counters) - len(counters),
        suggested=(),
        charts=_charts(a, comparison, explanation, measured),
    )


PAGE = Page(
    "compare", "/compare", "compare.html", view, RUNS, label="Compare", table="counters", fill=RUN, hint="Run it twice"
)


def _names(query: PageQuery) -> tuple[str, ...]:
    """Return the names of one or two runs, or none. Raises: InvalidInputError."""
    ticked = query.several("run")
    names = tuple(filter(None, (query.word("a"), query.word("b")))) or ticked
    if len(names) > 2 or (ticked and names != ticked):
        raise InvalidInputError(f"query parameter run: {len(ticked)} runs, expected one or two, or `a` and `b` alone")
    return names


def _run(client: Local, name: str) -> Run:
    run_id = run_named(client, name).run_id
    with client.store.catalog.read() as session:
        return session.runs.get(run_id)


def _peers(client: Local, run: Run) -> list[Run]:
    """Return the other runs of the cohort that began nearest, as far as the reader may see them."""
    with client.store.catalog.read() as session:
        near = session.runs.some(session.runs.near(run, limit=PEERS))
    return [peer for peer in near if peer.state is not RunState.RUNNING]


def _form(client: Local) -> CompareView:
    with client.store.catalog.read() as session:
        newest = session.judged_runs.find(RunFilter(), VerdictFilter((Verdict.SLOW,)), limit=SUGGESTED)
        slow = session.runs.some([place.run_id for place in newest])
        has_runs = bool(slow or session.runs.find(limit=1))
        are_slow = {run.run_id for run in slow}
        near = [[one for one in session.runs.near(run, limit=PEERS) if one not in are_slow] for run in slow]
        others = {run.run_id: run for run in session.runs.some([of_run[0] for of_run in near if of_run])}
    pairs = zip(slow, near, strict=True)
    sentence = "Which runs do you want to compare?"
    suggested = tuple(Suggestion(run, others.get(of_run[0]) if of_run else None) for run, of_run in pairs)[::-1]
    return CompareView(sentence, None, None, 0, None, None, None, (), 0, (), 0, 0, suggested, (), has_runs=has_runs)


def _compared(client: Local, a: Run, b: Run) -> tuple[Comparison | None, str | None]:
    """Return the comparison, or the reason why there is none. Raises: InvalidInputError for one run twice."""
    try:
        return client.compare(a.run_id, b.run_id), None
    except InvalidInputError as error:
        if a.run_id == b.run_id:
            raise
        return None, str(error)


def _sentence(a: Run, comparison: Comparison | None, explanation: Explanation | None) -> str:
    if explanation:
        return explanation.sentence
    if comparison is None:
        return "No verdict on A and B."
    return difference_words(comparison, *_letters(a, comparison))


def _letters(a: Run, comparison: Comparison) -> tuple[str, str]:
    """Return the letters of the slower and of the faster run."""
    return ("A", "B") if comparison.slower == a.run_id else ("B", "A")


def _charts(
    a: Run, comparison: Comparison | None, explanation: Explanation | None, measured: Recorded
) -> tuple[Chart, ...]:
    charts: list[Chart] = []
    if comparison:
        charts.append(waterfall_between(comparison, *_letters(a, comparison)))
    if explanation and explanation.excess is not None:
        charts.append(waterfall(explanation))
    own, theirs = step_quantiles(measured.a), step_quantiles(measured.b)
    if own and theirs:
        charts.append(QuantileShift(own, theirs, COHORT if explanation else "B"))
    return tuple(charts)
