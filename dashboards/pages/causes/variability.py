"""The Variability page: the cohorts that differ most from run to run, and the time that is lost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from crosswind.client.local import Local
from crosswind.dashboards.figures.causes import cause_totals
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.variability import cohort_distributions, cohort_over_time
from crosswind.dashboards.pages.page import CAUSES, Page, PageQuery, Place
from crosswind.dashboards.pages.runs.run import cohort_id
from crosswind.dashboards.pages.scope import Scope, scope_of
from crosswind.dashboards.wording import count, percent, scalar, seconds
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.explanations import Explanation, Verdict
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.metric import Scalar
from crosswind.data.schema.run import Run, cohort_key
from crosswind.data.store.features import all_runs, summaries

NEWEST = 500  # runs that the page looks at
FEWEST = 3  # runs with steps, from which on a cohort is ranked
EXPLAINED = 50  # newest runs of the selected cohort that are explained
DRAWN_COHORTS = 12
SLOWEST = 8


@dataclass(frozen=True)
class CohortRow:
    """One cohort.

    `cov_ratio` is the sample standard deviation of its runs' mean step times over their mean, `step_cov_ratio` the
    median of the CoV within its runs. `lost_seconds` is what its runs took beyond the cohort's median step time, and
    `lost_ratio` that over all of their step time.
    """

    cohort_id: str
    workload: str
    system: str
    configuration: Mapping[str, Scalar]
    label: str
    world_size: int | None
    runs: int
    step_p50_seconds: float
    cov_ratio: float
    step_cov_ratio: float | None
    lost_seconds: float
    lost_ratio: float


@dataclass(frozen=True)
class SlowRun:
    """One of the slowest runs of the cohort selected."""

    run: Run
    step_seconds: float
    ratio: float
    explanation: Explanation | None


@dataclass(frozen=True)
class VariabilityView:
    """The page's contents."""

    sentence: str
    scope: Scope
    cohorts: tuple[CohortRow, ...]
    looked_at: int
    in_small_cohorts: int
    selected: CohortRow | None
    slowest: tuple[SlowRun, ...]
    explained: int
    charts: tuple[Chart, ...]
    next_place: Place | None = None

    title = "Variability"


def view(client: Local, query: PageQuery) -> VariabilityView:
    """Return the cohorts among the newest runs, and one of them in detail. Raises: NotFoundError."""
    scope = scope_of(client, query)
    wanted = RunFilter(workload=scope.workload, system=scope.system, since_ns=query.since_ns)
    runs = all_runs(client.store, wanted, limit=NEWEST)
    by_id = {run.run_id: run for run in runs}
    outcome = summaries(client.store, runs)
    cohorts = _cohorts(outcome, by_id)
    selected = _selected(cohorts, query.word("cohort"))
    members = outcome[outcome["cohort"].map(cohort_id) == selected.cohort_id] if selected else outcome.iloc[:0]
    explanations = _explained(client, members, by_id)
    return VariabilityView(
        sentence=_sentence(cohorts, len(runs)),
        scope=scope,
        cohorts=cohorts,
        looked_at=len(runs),
        in_small_cohorts=len(runs) - sum(cohort.runs for cohort in cohorts),
        selected=selected,
        slowest=_slowest(members, by_id, explanations),
        explained=len(explanations),
        charts=_charts(outcome, members, cohorts, explanations),
    )


PAGE = Page("variability", "/variability", "variability.html", view, CAUSES, label="Variability", table="cohorts")


def _cohorts(outcome: pd.DataFrame, by_id: Mapping[str, Run]) -> tuple[CohortRow, ...]:
    timed = outcome.dropna(subset=["step_mean_seconds"])
    groups = [group for _, group in timed.groupby("cohort") if len(group) >= FEWEST]
    rows = [_cohort(group, by_id[str(group["run_id"].iloc[0])]) for group in groups]
    names = _names(rows)
    ranked = sorted(rows, key=lambda row: -row.cov_ratio)
    return tuple(CohortRow(**{**vars(row), "label": names[row.cohort_id]}) for row in ranked)


def _cohort(group: pd.DataFrame, run: Run) -> CohortRow:
    means, steps = group["step_mean_seconds"], group["steps"]
    lost = float(((means - means.median()).clip(lower=0) * steps).sum())
    within = group["step_cov_ratio"].dropna()
    return CohortRow(
        cohort_id=cohort_id(cohort_key(run)),
        workload=run.workload,
        system=run.system,
        configuration=run.configuration,
        label="",
        world_size=run.world_size,
        runs=len(group),
        step_p50_seconds=float(group["step_p50_seconds"].median()),
        cov_ratio=float(means.std() / means.mean()),
        step_cov_ratio=float(within.median()) if len(within) else None,
        lost_seconds=lost,
        lost_ratio=lost / float((means * steps).sum()),
    )


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


def _selected(cohorts: Sequence[CohortRow], wanted: str | None) -> CohortRow | None:
    if wanted is None:
        return cohorts[0] if cohorts else None
    for row in cohorts:
        if row.cohort_id == wanted:
            return row
    raise NotFoundError(
        f"cohort {wanted[:60]!r} is not among those of the newest {NEWEST} runs with {FEWEST} or more runs"
    )


def _explained(client: Local, members: pd.DataFrame, by_id: Mapping[str, Run]) -> Mapping[str, Explanation]:
    newest = [by_id[str(run_id)] for run_id in members["run_id"].tail(EXPLAINED)]
    return client.explain_runs(client.store, newest) if newest else {}


def _slowest(
    members: pd.DataFrame, by_id: Mapping[str, Run], explanations: Mapping[str, Explanation]
) -> tuple[SlowRun, ...]:
    means = members.dropna(subset=["step_mean_seconds"]).set_index("run_id")["step_mean_seconds"]
    median = float(means.median()) if len(means) else 1.0
    worst = means.nlargest(SLOWEST)
    return tuple(
        SlowRun(by_id[str(run_id)], float(mean), float(mean) / median, explanations.get(str(run_id)))
        for run_id, mean in worst.items()
    )


def _charts(
    outcome: pd.DataFrame,
    members: pd.DataFrame,
    cohorts: Sequence[CohortRow],
    explanations: Mapping[str, Explanation],
) -> tuple[Chart, ...]:
    selected = str(members["cohort"].iloc[0]) if len(members) else ""
    keys = {cohort_id(str(key)): str(key) for key in outcome["cohort"].unique()}
    shown = [row for place, row in enumerate(cohorts) if place < DRAWN_COHORTS or keys[row.cohort_id] == selected]
    labels = {keys[row.cohort_id]: row.label for row in shown}
    verdicts = {run_id: explanation.verdict for run_id, explanation in explanations.items()}
    charts = (
        cohort_over_time(members, verdicts),
        cause_totals(_shares(explanations), explained_runs=len(explanations)),
        cohort_distributions(outcome, labels, selected=selected),
    )
    return tuple(chart for chart in charts if chart is not None)


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


def _sentence(cohorts: Sequence[CohortRow], runs: int) -> str:
    if not cohorts:
        return f"No cohort among {count(runs, 'run')} has {FEWEST} runs with steps yet, so nothing can be compared."
    lost, worst = sum(row.lost_seconds for row in cohorts), cohorts[0]
    return (
        f"{worst.label} varies most: run to run its step time has a CoV of {percent(worst.cov_ratio)}. "
        f"Over {count(len(cohorts), 'cohort')}, {seconds(lost)} went to runs slower than their cohort's median."
    )
