"""Cohorts of runs with the verdicts on their newest runs, summed by SQL."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import CTE, Connection, FromClause, Select, func, select

from crosswind.data.catalog import rows, tables
from crosswind.data.catalog.judged_runs import Judged
from crosswind.data.catalog.runs import NEWEST_FIRST, RunFilter, filtered
from crosswind.data.catalog.seen import newest_seen
from crosswind.data.schema.access import ALL_ROWS, RowRule
from crosswind.data.schema.answers.explanations import Verdict

RUNS, TABLE = tables.runs, tables.run_verdicts
COHORTS = 100  # that were used last
RUNS_OF_EACH = 200  # the newest, which are summed
OF_SOME = 8000  # newest runs that may be seen by somebody who does not see all
MEAN = TABLE.c.step_mean_seconds


@dataclass(frozen=True)
class Sums:
    """Sums over runs of one cohort that have ended, `timed` of them with mean step times.

    `run_id` is one of them; `means` and `squares` are sums of mean step times and of their squares, `p50s` and
    `covs` of each run's own median step and CoV.
    """

    run_id: str
    timed: int
    with_p50: int
    with_cov: int
    means: float
    squares: float
    p50s: float
    covs: float
    measured_seconds: float


@dataclass(frozen=True)
class JudgedCohort:
    """A cohort by its digest: its newest runs by verdict and cause, and sums over each of these groups."""

    cohort: str
    groups: tuple[tuple[Judged, Sums], ...]

    @property
    def runs(self) -> int:
        """Return how many runs were summed."""
        return sum(judged.runs for judged, _ in self.groups)

    @property
    def sums(self) -> Sums:
        """Return the sums over all groups."""
        parts = [sums for _, sums in self.groups]
        names = ("timed", "with_p50", "with_cov", "means", "squares", "p50s", "covs", "measured_seconds")
        return Sums(max(one.run_id for one in parts), *(sum(getattr(one, name) for one in parts) for name in names))

    @property
    def cov_ratio(self) -> float | None:
        """Return the sample standard deviation of the runs' mean step times over their mean."""
        sums = self.sums
        if sums.timed < 2 or not sums.means:
            return None
        mean = sums.means / sums.timed
        variance = max(0.0, sums.squares - sums.timed * mean**2) / (sums.timed - 1)
        return float(variance**0.5 / mean)

    @property
    def lost_seconds(self) -> float:
        """Return the time that slow runs took beyond what was expected of them."""
        return sum(judged.excess_seconds for judged, _ in self.groups if judged.verdict == Verdict.SLOW)


class JudgedCohorts:
    """Cohorts and the verdicts on their runs, over one connection; of runs that the rule lets be seen."""

    def __init__(self, connection: Connection, rule: RowRule = ALL_ROWS) -> None:
        self._connection = connection
        self._rule = rule

    def find(self, wanted: RunFilter, cohorts: Collection[str] | None = None) -> list[JudgedCohort]:
        """Return those of the cohorts that match, or those used last, each summed over its newest runs."""
        by_cohort: dict[str, list[tuple[Judged, Sums]]] = defaultdict(list)
        rows_of = self._connection.execute(_summed(self._newest(wanted, cohorts)))
        for cohort, verdict, cause, runs, excess, *sums in rows_of:
            by_cohort[cohort].append((Judged(verdict, cause, runs, excess), Sums(*sums)))
        return [JudgedCohort(cohort, tuple(groups)) for cohort, groups in by_cohort.items()]

    def mean_steps(self, wanted: RunFilter, cohorts: Collection[str]) -> list[tuple[str, float]]:
        """Return the cohort and the mean step time of the newest runs of these cohorts, seconds."""
        newest = self._newest(wanted, cohorts)
        query = select(newest.c.cohort, MEAN).join(TABLE, TABLE.c.run_id == newest.c.run_id)
        return [(row[0], row[1]) for row in self._connection.execute(query.where(MEAN.is_not(None)))]

    def _newest(self, wanted: RunFilter, cohorts: Collection[str] | None) -> FromClause:
        """Return run and cohort of the newest runs of each cohort: of those given, or of those that were used last."""
        if not self._rule.sees_all:
            chosen = filtered(select(RUNS.c.run_id, RUNS.c.cohort), wanted)
            if cohorts is not None:
                chosen = chosen.where(rows.among(self._connection, RUNS.c.cohort, cohorts))
            return newest_seen(self._rule, chosen, NEWEST_FIRST, OF_SOME).subquery()
        last = _last_used(wanted, cohorts).cte()
        of_cohorts = select(RUNS.c.run_id, RUNS.c.cohort).join(last, last.c.cohort == RUNS.c.cohort)
        return of_cohorts.where(RUNS.c.listed_ns >= last.c.first_ns).subquery()


def _last_used(wanted: RunFilter, among: Collection[str] | None) -> Select[Any]:
    """Return the cohorts that were used last, and when the first of the newest runs of each began.

    One step through an index for each cohort that is stored, not for each run; all runs of one are of one workload.
    """
    cohorts, newest, since_ns = _cohorts(), RUNS.alias("newest"), wanted.since_ns or 0
    of_cohort = select(RUNS.c.run_id).where(RUNS.c.cohort == cohorts.c.cohort, RUNS.c.listed_ns >= since_ns)
    last = of_cohort.order_by(*NEWEST_FIRST).limit(1).correlate(cohorts).scalar_subquery()
    earlier = select(RUNS.c.listed_ns).where(RUNS.c.cohort == newest.c.cohort, RUNS.c.listed_ns >= since_ns)
    first_ns = earlier.order_by(*NEWEST_FIRST).limit(1).offset(RUNS_OF_EACH - 1).correlate(newest).scalar_subquery()
    query = select(newest.c.cohort, func.coalesce(first_ns, since_ns).label("first_ns"))
    query = query.select_from(cohorts.join(newest, newest.c.run_id == last))
    for name in ("system", "workload"):
        if (value := getattr(wanted, name)) is not None:
            query = query.where(newest.c[name] == value)
    if among is not None:
        query = query.where(cohorts.c.cohort.in_(sorted(among)))
    return query.order_by(newest.c.listed_ns.desc(), newest.c.cohort).limit(COHORTS)


def _cohorts() -> CTE:
    """Return every cohort, by one step through the index for each."""
    first = select(func.min(RUNS.c.cohort).label("cohort")).cte("every_cohort", recursive=True)
    following = select(func.min(RUNS.c.cohort)).where(RUNS.c.cohort > first.c.cohort).correlate(first)
    return first.union_all(select(following.scalar_subquery()).where(first.c.cohort.is_not(None)))


def _summed(newest: FromClause) -> Select[Any]:
    groups = newest.c.cohort, TABLE.c.verdict, TABLE.c.cause
    summed: Sequence[Any] = (MEAN, MEAN * MEAN, TABLE.c.step_p50_seconds, TABLE.c.step_cov_ratio)
    sums = [func.coalesce(func.sum(one), 0.0) for one in (*summed, TABLE.c.measured_seconds)]
    counts = [func.count(one) for one in (MEAN, TABLE.c.step_p50_seconds, TABLE.c.step_cov_ratio)]
    excess = func.coalesce(func.sum(TABLE.c.excess_seconds), 0.0)
    query = select(*groups, func.count(), excess, func.max(newest.c.run_id), *counts, *sums)
    return query.join(TABLE, TABLE.c.run_id == newest.c.run_id).group_by(*groups)
