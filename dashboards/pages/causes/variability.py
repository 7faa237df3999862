"""The Variability page: the cohorts that differ most from run to run, and the time that is lost."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from crosswind.client.local import Local
from crosswind.dashboards.figures.causes import cause_totals
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.variability import CohortOverTime, cohort_distributions, cohort_over_time
from crosswind.dashboards.pages.page import CAUSES, RUN, Page, PageQuery, Place
from crosswind.dashboards.pages.scope import Scope, scope_of
from crosswind.dashboards.queries import judge_newest
from crosswind.dashboards.wording import count, percent, scalar, seconds
from crosswind.data.catalog.judged_cohorts import RUNS_OF_EACH, JudgedCohort
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.explanations import UNKNOWN, Explanation, Verdict
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.metric import Scalar
from crosswind.data.schema.run import Run, cohort_digest
from crosswind.data.schema.run_verdict import RunVerdict
from crosswind.data.schema.words import words
from crosswind.models.explain.stored import stored_explanations

FEWEST = 3  # runs that have ended, from which on a cohort is ranked
JUDGED = 50  # newest runs that are judged here where no server did
EXPLAINED = 50  # newest slow runs of the selected cohort whose causes are summed
SHOWN = 50
DRAWN_COHORTS = 6
SLOWEST = 8
ORDERS = ("cov", "lost")
NOT_JUDGED = "not judged yet"


@dataclass(frozen=True)
class CohortRow:
    """One cohort, by the newest of its runs that have ended.

    `cov_ratio` is the sample standard deviation of its runs' mean step times over their mean, `step_cov_ratio` the
    mean of the CoV within its runs. `lost_seconds` is what its slow runs took beyond what was expected of them, and
    `lost_ratio` that over the time of all; `cause` is the main cause of the slow runs that lost most.
    """

    cohort_id: str
    workload: str
    system: str
    configuration: Mapping[str, Scalar]
    label: str
    world_size: int | None
    runs: int
    verdicts: Mapping[str, int]
    step_p50_seconds: float | None
    cov_ratio: float | None
    step_cov_ratio: float | None
    lost_seconds: float
    lost_ratio: float | None
    cause: str | None


@dataclass(frozen=True)
class SlowRun:
    """One of the slowest runs of the cohort selected."""

    run: Run
    outcome: RunVerdict
    ratio: float


@dataclass(frozen=True)
class VariabilityView:
    """The page's contents."""

    sentence: str
    scope: Scope
    sort: str
    cohorts: tuple[CohortRow, ...]
    more_cohorts: int
    looked_at: int
    in_small_cohorts: int
    selected: CohortRow | None
    slowest: tuple[SlowRun, ...]
    drawn: int
    first_ns: int | None
    last_ns: int | None
    charts: tuple[Chart, ...]
    next_place: Place | None = None

    title = "Variability"

    @property
    def is_empty(self) -> bool:
        """Return whether too little is stored for the page."""
        return not self.cohorts


def view(client: Local, query: PageQuery) -> VariabilityView:
    """Return the cohorts, and one of them in detail. Raises: NotFoundError, InvalidInputError."""
    scope, sort = scope_of(client, query), query.choice("sort", ORDERS) or ORDERS[0]
    wanted = RunFilter(workload=scope.workload, system=scope.system, since_ns=query.since_ns)
    judge_newest(client, wanted, limit=JUDGED)
    with client.store.catalog.read() as session:
        judged = session.judged_cohorts.find(wanted)
    ranked = sorted((one for one in judged if one.runs >= FEWEST), key=_order(sort))
    cohorts = _rows(client, ranked[:SHOWN])
    selected = _selected(client, cohorts, query.word("cohort"))
    runs, outcomes = runs_of_cohort(client, wanted, selected.cohort_id) if selected else ([], {})
    began = [run.started_ns for run in runs if run.started_ns is not None]
    distributions = _distributions(client, wanted, cohorts, selected)
    charts = over_time(runs, outcomes), _causes(client, runs, outcomes), distributions
    return VariabilityView(
        sentence=_sentence(ranked, cohorts, sort),
        scope=scope,
        sort=sort,
        cohorts=cohorts,
        more_cohorts=len(ranked) - len(cohorts),
        looked_at=sum(one.runs for one in judged),
        in_small_cohorts=sum(one.runs for one in judged if one.runs < FEWEST),
        selected=selected,
        slowest=_slowest(runs, outcomes),
        drawn=len(outcomes),
        first_ns=min(began, default=None),
        last_ns=max(began, default=None),
        charts=tuple(chart for chart in charts if chart is not None),
    )


PAGE = Page(
    "variability",
    "/variability",
    "variability.html",
    view,
    CAUSES,
    label="Variability",
    table="cohorts",
    fill=RUN,
    hint="Run one configuration three times",
)


def runs_of_cohort(client: Local, wanted: RunFilter, cohort_id: str) -> tuple[list[Run], Mapping[str, RunVerdict]]:
    """Return the newest runs of a cohort, oldest first and in outline, and the verdicts on those that have ended."""
    of_cohort = RunFilter(cohort=cohort_id, since_ns=wanted.since_ns, until_ns=wanted.until_ns)
    with client.store.catalog.read() as session:
        runs = session.runs.outlines(of_cohort, limit=RUNS_OF_EACH)
        return runs, session.verdicts.get([run.run_id for run in runs])


def _order(sort: str) -> Callable[[JudgedCohort], tuple[float, float]]:
    def place(one: JudgedCohort) -> tuple[float, float]:
        cov = -1.0 if one.cov_ratio is None else one.cov_ratio
        return (-cov, -one.lost_seconds) if sort == "cov" else (-one.lost_seconds, -cov)

    return place


def _rows(client: Local, judged: Sequence[JudgedCohort]) -> tuple[CohortRow, ...]:
    with client.store.catalog.read() as session:
        runs = {cohort_digest(run): run for run in session.runs.some([one.sums.run_id for one in judged])}
    rows = [_row(one, runs[one.cohort]) for one in judged if one.cohort in runs]
    names = _names(rows)
    return tuple(replace(row, label=names[row.cohort_id]) for row in rows)


def _row(judged: JudgedCohort, run: Run) -> CohortRow:
    sums, verdicts = judged.sums, Counter[str]()
    lost: defaultdict[str, float] = defaultdict(float)
    for one, _ in judged.groups:
        verdicts[one.verdict or NOT_JUDGED] += one.runs
        if one.verdict == Verdict.SLOW:
            lost[one.cause or UNKNOWN] += one.excess_seconds
    return CohortRow(
        cohort_id=judged.cohort,
        workload=run.workload,
        system=run.system,
        configuration=run.configuration,
        label="",
        world_size=run.world_size,
        runs=judged.runs,
        verdicts=verdicts,
        step_p50_seconds=_over(sums.p50s, sums.with_p50),
        cov_ratio=judged.cov_ratio,
        step_cov_ratio=_over(sums.covs, sums.with_cov),
        lost_seconds=judged.lost_seconds,
        lost_ratio=_over(judged.lost_seconds, sums.measured_seconds),
        cause=max(lost, key=lambda cause: lost[cause], default=None),
    )


def _over(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _names(rows: Sequence[CohortRow]) -> dict[str, str]:
    """Cohort id -> workload, and what in its configuration and scale distinguishes it from others of the workload."""
    names = {}
    for row in rows:
        same = [other for other in rows if other.workload == row.workload]
        varying = frozenset(name for name in row.configuration if len({_value(other, name) for other in same}) > 1)
        apart = [f"{name}={scalar(row.configuration[name])}" for name in sorted(varying)][:3]
        if len({other.world_size for other in same}) > 1:
            apart.append(f"ranks={row.world_size}")
        if len({other.system for other in same}) > 1:
            apart.append(f"on {row.system}")
        names[row.cohort_id] = " ".join([row.workload, *apart])
    return names


def _value(row: CohortRow, name: str) -> str:
    return scalar(row.configuration.get(name))


def _selected(client: Local, cohorts: Sequence[CohortRow], wanted: str | None) -> CohortRow | None:
    if wanted is None:
        return cohorts[0] if cohorts else None
    listed = next((row for row in cohorts if row.cohort_id == wanted), None)
    return listed or cohort_named(client, wanted)


def cohort_named(client: Local, cohort_id: str) -> CohortRow:
    """Return one cohort, whatever its system, workload and period. Raises: NotFoundError."""
    with client.store.catalog.read() as session:
        judged = session.judged_cohorts.find(RunFilter(), [cohort_id])
    rows = _rows(client, [one for one in judged if one.cohort == cohort_id])
    if not rows:
        raise NotFoundError(f"cohort {cohort_id[:60]!r} has no run that has ended")
    return rows[0]


def _slowest(runs: Sequence[Run], outcomes: Mapping[str, RunVerdict]) -> tuple[SlowRun, ...]:
    means = {run_id: one.step_mean_seconds for run_id, one in outcomes.items() if one.step_mean_seconds is not None}
    median = float(np.median(list(means.values()))) if means else 1.0
    by_id = {run.run_id: run for run in runs}
    worst = sorted(means, key=lambda run_id: -means[run_id])[:SLOWEST]
    return tuple(SlowRun(by_id[run_id], outcomes[run_id], means[run_id] / median) for run_id in worst)


def _causes(client: Local, runs: Sequence[Run], outcomes: Mapping[str, RunVerdict]) -> Chart | None:
    slow = [run.run_id for run in runs if run.run_id in outcomes and outcomes[run.run_id].verdict == Verdict.SLOW]
    explanations = stored_explanations(client.store, slow[-EXPLAINED:], is_current=False)
    return cause_totals(_shares(explanations), explained_runs=len(outcomes))


def _distributions(
    client: Local, wanted: RunFilter, cohorts: Sequence[CohortRow], selected: CohortRow | None
) -> Chart | None:
    if selected is None:
        return None
    labels = {row.cohort_id: row.label for row in (selected, *cohorts[:DRAWN_COHORTS])}
    with client.store.catalog.read() as session:
        steps = session.judged_cohorts.mean_steps(wanted, labels)
    table = pd.DataFrame(steps, columns=["cohort", "step_mean_seconds"])
    return cohort_distributions(table, labels, selected=selected.cohort_id)


def over_time(
    runs: Sequence[Run], outcomes: Mapping[str, RunVerdict], selected: Sequence[str] = ()
) -> CohortOverTime | None:
    """Return the figure of a cohort's runs by their start, those selected marked."""
    rows = [
        (run.run_id, run.started_ns, outcomes[run.run_id].step_mean_seconds) for run in runs if run.run_id in outcomes
    ]
    verdicts = {run_id: Verdict(one.verdict) for run_id, one in outcomes.items() if one.verdict}
    table = pd.DataFrame(rows, columns=["run_id", "started_ns", "step_mean_seconds"])
    return cohort_over_time(table, verdicts, selected)


def _shares(explanations: Mapping[str, Explanation]) -> pd.DataFrame:
    rows: list[tuple[str, str, float, bool]] = []
    for run_id, explanation in explanations.items():
        if explanation.verdict is Verdict.SLOW and explanation.unexplained is not None:
            rows += [
                (run_id, share.cause, share.seconds.value, share.cause == explanation.cause)
                for share in explanation.shares
            ]
            rows.append((run_id, "unexplained", explanation.unexplained.value, False))
    return pd.DataFrame(rows, columns=["run_id", "cause", "seconds", "is_main"])


def _sentence(ranked: Sequence[JudgedCohort], cohorts: Sequence[CohortRow], sort: str) -> str:
    if not cohorts:
        return f"No cohort has {FEWEST} runs that have ended yet, so nothing can be compared."
    first, lost = cohorts[0], sum(one.lost_seconds for one in ranked)
    mainly = f", mainly to {words(first.cause)}" if first.cause and first.cause != UNKNOWN else ""
    if sort == "lost" and lost:
        return f"{first.label} lost most time: {seconds(first.lost_seconds)} of {seconds(lost)}{mainly}."
    if first.cov_ratio is None:
        return f"No step times are stored of the newest runs of {count(len(ranked), 'cohort')}."
    own = f"; {seconds(first.lost_seconds)} lost{mainly}" if first.lost_seconds else ""
    return f"A cohort of {first.workload} varies most: CoV {percent(first.cov_ratio)} between runs{own}."
