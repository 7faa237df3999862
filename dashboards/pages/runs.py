"""The Runs page: slow runs and their causes."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.runs import runs_over_time
from crosswind.dashboards.pages.page import Page, PageQuery, Place
from crosswind.dashboards.wording import count, seconds, short_configuration
from crosswind.data.catalog.catalog import Session
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.explanations import UNKNOWN, Explanation, Verdict
from crosswind.data.schema.metric import Scalar
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.words import words
from crosswind.data.store.features import summaries

SHOWN, MOST_SHOWN = 50, 200
MOST_SEARCHED = 5000  # runs looked through for one page of search results
WORKLOADS_OF = 200  # newest runs whose workloads the filter offers
TRUTH = "injected"  # the tag that names the disturbance injected into a run
BLOCK = 200


@dataclass(frozen=True)
class RunRow:
    """One line of the table."""

    run: Run
    configuration: str
    steps: int | None
    step_p50_seconds: float | None
    step_cov_ratio: float | None
    explanation: Explanation

    @property
    def ratio(self) -> float | None:
        """Measured over expected time."""
        measured, expected = self.explanation.measured_seconds, self.explanation.expected_seconds
        return None if measured is None or not expected else measured / expected

    @property
    def injected(self) -> str | None:
        """The injected disturbance, if the run has its tag."""
        return self.run.tags.get(TRUTH)


Key = str | float | None
SORTS: Mapping[str, Callable[[RunRow], Key]] = {
    "verdict": lambda row: row.explanation.verdict.value,
    "workload": lambda row: row.run.workload,
    "started": lambda row: row.run.started_ns,
    "seconds": lambda row: row.run.seconds,
    "p50": lambda row: row.step_p50_seconds,
    "cov": lambda row: row.step_cov_ratio,
    "excess": lambda row: row.explanation.excess.value if row.explanation.excess else None,
    "cause": lambda row: row.explanation.cause,
    "injected": lambda row: row.injected,
}
DIRECTIONS = tuple(sign + name for name in SORTS for sign in ("", "-"))


@dataclass(frozen=True)
class RunsQuery:
    """The filters, the order and the size of the page; None is no filter."""

    workload: str | None
    state: str | None
    verdict: str | None
    q: str | None
    sort: str
    limit: int

    @property
    def is_narrowed(self) -> bool:
        """Return whether any filter is set."""
        return any((self.workload, self.state, self.verdict, self.q))


@dataclass(frozen=True)
class RunsView:
    """The page's contents."""

    sentence: str
    worst: RunRow | None
    asked: RunsQuery
    rows: tuple[RunRow, ...]
    hidden: int  # runs of this page that the verdict filter left out
    stored: int
    workloads: tuple[str, ...]
    states: tuple[str, ...]
    verdicts: tuple[str, ...]
    charts: tuple[Chart, ...]
    next_place: Place | None

    title = "Runs"

    @property
    def has_truth(self) -> bool:
        """Return whether any run shown has the tag of an injected disturbance."""
        return any(row.injected for row in self.rows)


def view(client: Local, query: PageQuery) -> RunsView:
    """Return the newest runs that match, explained. Raises: InvalidInputError."""
    filters = _filters(query)
    with client.store.catalog.read() as session:
        runs, next_place = _matching(session, filters, query.before)
        stored = session.runs.count()
        workloads = sorted({run.workload for run in session.runs.find(limit=WORKLOADS_OF)})
    every = _rows(client, runs)
    rows = [row for row in every if filters.verdict in (None, row.explanation.verdict)]
    chart = runs_over_time(_points(rows))
    return RunsView(
        sentence=_sentence(rows, is_part=next_place is not None or query.before is not None),
        worst=max((row for row in rows if _is_slow(row)), key=lambda row: row.ratio or 0.0, default=None),
        asked=filters,
        rows=tuple(_sorted(rows, filters.sort)),
        hidden=len(every) - len(rows),
        stored=stored,
        workloads=tuple(workloads),
        states=tuple(RunState),
        verdicts=tuple(Verdict),
        charts=() if chart is None else (chart,),
        next_place=next_place,
    )


PAGE = Page("runs", "/runs", "runs.html", view, label="Runs", section="runs")


def _filters(query: PageQuery) -> RunsQuery:
    return RunsQuery(
        workload=query.word("workload"),
        state=query.choice("state", tuple(RunState)),
        verdict=query.choice("verdict", tuple(Verdict)),
        q=query.word("q"),
        sort=query.choice("sort", DIRECTIONS) or "-started",
        limit=query.amount("limit", SHOWN, most=MOST_SHOWN),
    )


def _matching(session: Session, filters: RunsQuery, before: Place | None) -> tuple[list[Run], Place | None]:
    """Return one page of runs, newest first, and the place from which the next one goes on."""
    stored = RunFilter(workload=filters.workload, state=RunState(filters.state) if filters.state else None)
    matches: list[Run] = []
    searched = 0
    size = BLOCK if filters.q else filters.limit + 1
    while searched < MOST_SEARCHED:
        block = session.runs.find(stored, before=before, limit=size)
        for run in block:
            if len(matches) == filters.limit:
                return matches, before
            before = (run.started_ns or 0, run.run_id)
            if filters.q is None or _mentions(run, filters.q):
                matches.append(run)
        searched += len(block)
        if len(block) < size:
            return matches, None
    return matches, before


def _mentions(run: Run, text: str) -> bool:
    pairs = {**run.configuration, **run.tags, **run.software, **run.facts.given}
    texts = (run.run_id, run.workload, run.system, run.job_id or "", *run.nodes, *run.command)
    everything = [*texts, *(f"{name}={value}" for name, value in pairs.items())]
    return all(any(word in part.lower() for part in everything) for word in text.lower().split())


def _rows(client: Local, runs: list[Run]) -> list[RunRow]:
    if not runs:
        return []
    outcome = summaries(client.store, runs).set_index("run_id")
    explanations = client.explain_runs(client.store, runs)
    varying = _varying(runs)
    return [
        RunRow(
            run=run,
            configuration=short_configuration(run.configuration, varying[run.workload]),
            steps=_whole(outcome.loc[run.run_id, "steps"]),
            step_p50_seconds=_number(outcome.loc[run.run_id, "step_p50_seconds"]),
            step_cov_ratio=_number(outcome.loc[run.run_id, "step_cov_ratio"]),
            explanation=explanations[run.run_id],
        )
        for run in runs
    ]


def _varying(runs: list[Run]) -> dict[str, frozenset[str]]:
    """Workload -> the parameters that its runs do not all have in common."""
    seen: dict[str, dict[str, Counter[Scalar]]] = defaultdict(lambda: defaultdict(Counter))
    for run in runs:
        for name, value in run.configuration.items():
            seen[run.workload][name][value] += 1
    total = Counter(run.workload for run in runs)
    return {
        workload: frozenset(name for name, values in seen[workload].items() if max(values.values()) < total[workload])
        for workload in total
    }


def _sorted(rows: list[RunRow], sort: str) -> list[RunRow]:
    key = SORTS[sort.removeprefix("-")]
    sortable = [row for row in rows if key(row) is not None]
    unknown = [row for row in rows if key(row) is None]
    return sorted(sortable, key=key, reverse=sort.startswith("-")) + unknown  # type: ignore[arg-type]


def _points(rows: list[RunRow]) -> pd.DataFrame:
    columns = [
        "run_id",
        "workload",
        "started_ns",
        "verdict",
        "measured_seconds",
        "expected_seconds",
        "excess_low",
        "excess_high",
    ]
    points = []
    for row in rows:
        explanation, excess = row.explanation, row.explanation.excess
        times_ = (
            explanation.measured_seconds,
            explanation.expected_seconds,
            excess.low if excess else None,
            excess.high if excess else None,
        )
        points.append((row.run.run_id, row.run.workload, row.run.started_ns, explanation.verdict.value, *times_))
    return pd.DataFrame(points, columns=columns)


def _is_slow(row: RunRow) -> bool:
    return row.explanation.verdict is Verdict.SLOW


def _sentence(rows: list[RunRow], *, is_part: bool) -> str:
    judged = [row for row in rows if row.explanation.verdict is not Verdict.INSUFFICIENT_EVIDENCE]
    slow = [row for row in judged if _is_slow(row)]
    left = len(rows) - len(judged)
    perhaps = sum(row.explanation.verdict is Verdict.PERHAPS_SLOW for row in judged)
    unjudged = f" {count(left, 'run')} without enough evidence to judge." if left else ""
    if not judged:
        return unjudged.strip()
    unjudged = (f" {perhaps} perhaps {'was' if perhaps == 1 else 'were'}." if perhaps else "") + unjudged
    delayed = sum(row.explanation.verdict is Verdict.ONE_RANK_DELAYS for row in judged)
    unjudged = (f" One rank delays {count(delayed, 'run')}." if delayed else "") + unjudged
    here = f"the {count(len(judged), 'run')} shown" if is_part else count(len(judged), "run")
    if not slow:
        return f"None of {here} was slow.{unjudged}"
    if len(slow) == len(judged) > 1:
        return f"All {here.removeprefix('the ')} were slow; {_largest_cause(slow)}.{unjudged}"
    were = "was" if len(slow) == 1 else "were"
    return f"{len(slow)} of {here} {were} slow; {_largest_cause(slow)}.{unjudged}"


def _largest_cause(slow: list[RunRow]) -> str:
    lost: dict[str, float] = defaultdict(float)
    for row in slow:
        for share in row.explanation.shares:
            lost[share.cause] += share.seconds.value
        if row.explanation.unexplained:
            lost[UNKNOWN] += row.explanation.unexplained.value
    if not lost:
        return "no cause has enough evidence"
    cause, most = max(lost.items(), key=lambda item: item[1])
    if cause == UNKNOWN:
        return f"most of the time lost, {seconds(most)}, is unexplained"
    return f"the largest cause was {words(cause)}, {seconds(most)} lost"


def _number(value: object) -> float | None:
    return float(str(value)) if value is not None and not pd.isna(value) else None  # type: ignore[call-overload]


def _whole(value: object) -> int | None:
    number = _number(value)
    return None if number is None else int(number)
