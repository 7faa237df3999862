"""The Runs page: slow runs and their causes, sorted, filtered and counted by the catalog."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.runs import runs_over_time
from crosswind.dashboards.pages.page import RUN, RUNS, Page, PageQuery, Place
from crosswind.dashboards.pages.runs.columns import COLUMNS, Column, chosen_columns, short_ids, shown_columns
from crosswind.dashboards.pages.scope import Scope, scope_of
from crosswind.dashboards.queries import judge_newest
from crosswind.dashboards.wording import count, seconds, short_configuration
from crosswind.data.catalog.judged_runs import NEWEST, OF_VERDICT, ORDERS, Judged, RunPlace, VerdictFilter
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.explanations import UNKNOWN, Explanation, Verdict
from crosswind.data.schema.answers.runs import RunOutcome
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.metric import Scalar
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.run_verdict import RunVerdict
from crosswind.data.schema.words import opening, words
from crosswind.data.store.features import outcomes
from crosswind.models.explain.stored import stored_explanations

SHOWN, MOST_SHOWN = 50, 200
MOST_SEARCHED = 5000  # runs looked through for one page of search results
TRUTH = "injected"  # the tag that names the disturbance injected into a run
BLOCK = 200
DIRECTIONS = tuple(sign + name for name in ORDERS for sign in ("", "-"))


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


@dataclass(frozen=True)
class RunsQuery:
    """The filters, the order and the size of the page; None is no filter."""

    scope: Scope
    since_ns: int | None
    state: str | None
    verdict: str | None
    cause: str | None
    q: str | None
    job: str | None
    user: str | None
    node: str | None
    columns: tuple[str, ...]  # empty: those that are shown by default
    sort: str
    limit: int

    @property
    def is_narrowed(self) -> bool:
        """Return whether any filter is set."""
        scope = self.scope
        return any(
            (
                scope.system,
                scope.workload,
                scope.period,
                self.state,
                self.verdict,
                self.cause,
                self.q,
                self.job,
                self.user,
                self.node,
            )
        )

    @property
    def of_runs(self) -> RunFilter:
        """The conditions on what was stored of the runs."""
        state = RunState(self.state) if self.state else None
        scope = self.scope
        named = (scope.workload, scope.system, state, self.job)
        return RunFilter(*named, user=self.user, since_ns=self.since_ns, node=self.node)

    @property
    def judged(self) -> VerdictFilter:
        """The conditions on the verdicts on them."""
        return VerdictFilter((self.verdict,) if self.verdict else (), self.cause)

    @property
    def is_by_verdict(self) -> bool:
        """Return whether verdicts decide which runs are shown."""
        return bool(self.verdict or self.cause) or self.sort.removeprefix("-") in OF_VERDICT


@dataclass(frozen=True)
class RunsView:
    """The page's contents."""

    sentence: str
    rest: str  # of the sentence: runs that were neither slow nor normal
    worst: RunRow | None
    asked: RunsQuery
    rows: tuple[RunRow, ...]
    columns: tuple[Column, ...]
    all_columns: tuple[Column, ...]
    short_ids: Mapping[str, str]
    matching: int | None  # runs that the filters leave; None where their text is searched
    states: tuple[str, ...]
    verdicts: tuple[str, ...]
    causes: tuple[str, ...]
    charts: tuple[Chart, ...]
    next_place: Place | None

    title = "Runs"

    @property
    def is_empty(self) -> bool:
        """Return whether too little is stored for the page."""
        return not self.asked.scope.stored


def view(client: Local, query: PageQuery) -> RunsView:
    """Return the runs that match, in the order asked for. Raises: InvalidInputError."""
    asked = _asked(client, query)
    if asked.is_by_verdict:
        judge_newest(client, asked.of_runs, limit=max(asked.limit, SHOWN))
    runs, next_place = _searched(client, asked, query.before) if asked.q else _part(client, asked, query.before)
    rows = _rows(client, runs)
    with client.store.catalog.read() as session:
        counts = _counts_of(rows) if asked.q else session.judged_runs.counts(asked.of_runs)
    counts = [one for one in counts if asked.verdict in (None, one.verdict)]
    causes = {one.cause_or_none for one in counts} - {None} | {asked.cause}
    counts = [one for one in counts if asked.cause in (None, one.cause_or_none)]
    chart = runs_over_time(_points(rows))
    sentence, rest = _sentences(counts, is_part=asked.q is not None and (next_place or query.before) is not None)
    return RunsView(
        sentence=sentence,
        rest=rest,
        worst=_worst(client, asked, rows),
        asked=asked,
        rows=tuple(rows),
        columns=shown_columns(asked.columns, asked.sort, [(row.run, row.injected) for row in rows]),
        all_columns=COLUMNS,
        short_ids=short_ids([row.run.run_id for row in rows]),
        matching=None if asked.q else sum(one.runs for one in counts),
        states=tuple(RunState),
        verdicts=tuple(Verdict),
        causes=tuple(sorted(filter(None, causes))),
        charts=() if chart is None else (chart,),
        next_place=next_place,
    )


PAGE = Page("runs", "/runs", "runs.html", view, RUNS, label="Runs", table="rows", fill=RUN)


def _asked(client: Local, query: PageQuery) -> RunsQuery:
    return RunsQuery(
        scope=scope_of(client, query),
        since_ns=query.since_ns,
        state=query.choice("state", tuple(RunState)),
        verdict=query.choice("verdict", tuple(Verdict)),
        cause=query.word("cause"),
        q=query.word("q"),
        job=query.word("job"),
        user=query.word("user"),
        node=query.word("node"),
        columns=chosen_columns(query),
        sort=query.choice("sort", DIRECTIONS) or NEWEST,
        limit=query.amount("limit", SHOWN, most=MOST_SHOWN),
    )


def _part(client: Local, asked: RunsQuery, before: Place | None) -> tuple[list[Run], Place | None]:
    """Return one page of runs, and the place from which the next one goes on."""
    with client.store.catalog.read() as session:
        places = session.judged_runs.find(
            asked.of_runs, asked.judged, by=asked.sort, after=_run_place(asked, before), limit=asked.limit + 1
        )
        shown = places[: asked.limit]
        by_id = {run.run_id: run for run in session.runs.some([place.run_id for place in shown])}
    last = shown[-1] if len(places) > len(shown) else None
    return [by_id[place.run_id] for place in shown], None if last is None else _place(asked, last)


def _place(asked: RunsQuery, last: RunPlace) -> Place:
    return last.listed_ns, json.dumps([asked.sort, last.value, last.run_id])


def _run_place(asked: RunsQuery, before: Place | None) -> RunPlace | None:
    """Return the place where the part before ended. Raises: InvalidInputError for one of another order."""
    if before is None:
        return None
    try:
        sort, value, run_id = json.loads(before[1])
    except ValueError:
        sort = value = run_id = None
    if sort != asked.sort:
        raise InvalidInputError(f"query parameter cursor: expected the place in a list sorted by {asked.sort}")
    return RunPlace(value, before[0], run_id)


def _searched(client: Local, asked: RunsQuery, before: Place | None) -> tuple[list[Run], Place | None]:
    """Return one page of the runs that mention a text, sorted within the page, and the place to go on from."""
    by_time = replace(asked, sort=NEWEST, limit=BLOCK)
    matches: list[Run] = []
    for _ in range(MOST_SEARCHED // BLOCK):
        block, following = _part(client, by_time, before)
        for run in block:
            if len(matches) == asked.limit:
                return matches, before
            before = _place(by_time, RunPlace(run.started_ns or 0, run.started_ns or 0, run.run_id))
            if _mentions(run, asked.q or ""):
                matches.append(run)
        if following is None:
            return matches, None
    return matches, before


def _mentions(run: Run, text: str) -> bool:
    pairs = {**run.configuration, **run.tags, **run.software, **run.facts.given}
    texts = (run.run_id, run.workload, run.system, run.job_id or "", *run.nodes, *run.command)
    everything = [*texts, *(f"{name}={value}" for name, value in pairs.items())]
    return all(any(word in part.lower() for part in everything) for word in text.lower().split())


def _rows(client: Local, runs: Sequence[Run]) -> list[RunRow]:
    """Return a row for each run; what was computed of it before counts until it is computed again."""
    if not runs:
        return []
    run_ids = [run.run_id for run in runs]
    explanations = stored_explanations(client.store, run_ids, is_current=False)
    if lacking := [run for run in runs if run.run_id not in explanations]:
        explanations |= client.explain_runs(client.store, lacking)
    with client.store.catalog.read() as session:
        verdicts = session.verdicts.get(run_ids)
    untimed = [run for run in runs if run.run_id not in verdicts]
    timed = {one.run_id: one for one in outcomes(client.store, untimed)} if untimed else {}
    varying = _varying(runs)
    return [_row(run, verdicts.get(run.run_id) or timed[run.run_id], varying, explanations[run.run_id]) for run in runs]


def _row(
    run: Run, timed: RunVerdict | RunOutcome, varying: Mapping[str, frozenset[str]], explanation: Explanation
) -> RunRow:
    configuration = short_configuration(run.configuration, varying[run.workload])
    return RunRow(run, configuration, timed.steps, timed.step_p50_seconds, timed.step_cov_ratio, explanation)


def _varying(runs: Sequence[Run]) -> dict[str, frozenset[str]]:
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


def _worst(client: Local, asked: RunsQuery, rows: Sequence[RunRow]) -> RunRow | None:
    """Return the slow run with the largest excess among all that match; of a search, among those shown."""
    if asked.verdict not in (None, Verdict.SLOW):
        return None
    if asked.q:
        slow = [row for row in rows if row.explanation.verdict is Verdict.SLOW]
        return max(slow, key=lambda row: row.ratio or 0.0, default=None)
    worst = replace(asked, verdict=Verdict.SLOW, sort="-excess", limit=1)
    return next(iter(_rows(client, _part(client, worst, None)[0])), None)


def _points(rows: Sequence[RunRow]) -> pd.DataFrame:
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


def _counts_of(rows: Sequence[RunRow]) -> list[Judged]:
    explanations = [row.explanation for row in rows]
    return [Judged(one.verdict, one.cause, 1, one.excess.value if one.excess else 0.0) for one in explanations]


def _sentences(counts: Sequence[Judged], *, is_part: bool) -> tuple[str, str]:
    """Return the headline, and the sentence about runs that were neither slow nor normal."""
    of: Counter[str | None] = Counter()
    for one in counts:
        of[one.verdict] += one.runs
    judged = sum(of.values()) - of[Verdict.INSUFFICIENT_EVIDENCE] - of[None]
    if not judged:
        return "No run can be judged yet.", _rest(of)
    here = f"the {count(judged, 'run')} shown" if is_part else count(judged, "run")
    slow = of[Verdict.SLOW]
    if not slow:
        return f"None of {here} was slow.", _rest(of)
    cause, lost = _largest_cause([one for one in counts if one.verdict == Verdict.SLOW])
    most = "most of the time lost is unexplained" if cause == UNKNOWN else f"{words(cause)} cost most"
    rest = f"{'Unexplained' if cause == UNKNOWN else opening(cause)}: {seconds(lost)} lost. {_rest(of)}".strip()
    if slow == judged > 1:
        return f"All {here.removeprefix('the ')} were slow; {most}.", rest
    return f"{slow} of {here} {'was' if slow == 1 else 'were'} slow; {most}.", rest


def _rest(of: Mapping[str | None, int]) -> str:
    delayed, perhaps = of[Verdict.ONE_RANK_DELAYS], of[Verdict.PERHAPS_SLOW]
    sentences = [
        f"One rank delays {count(delayed, 'run')}." if delayed else "",
        f"{perhaps} perhaps {'was' if perhaps == 1 else 'were'} slow." if perhaps else "",
        f"{count(left, 'run')} without enough evidence to judge."
        if (left := of[Verdict.INSUFFICIENT_EVIDENCE])
        else "",
        f"{count(left, 'run')} not judged yet." if (left := of[None]) else "",
    ]
    return " ".join(filter(None, sentences))


def _largest_cause(slow: Sequence[Judged]) -> tuple[str, float]:
    """Return the main cause of the slow runs that lost most time, and that time in seconds."""
    lost: dict[str, float] = defaultdict(float)
    for one in slow:
        lost[one.cause or UNKNOWN] += one.excess_seconds
    return max(lost.items(), key=lambda item: item[1])
