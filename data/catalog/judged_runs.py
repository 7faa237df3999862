"""Runs with their verdicts, sorted, filtered and counted by either."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, case, func, select, tuple_

from crosswind.data.catalog import tables
from crosswind.data.catalog.runs import ANY_RUN, RunFilter, filtered
from crosswind.data.catalog.seen import newest_seen, of_seen_runs
from crosswind.data.schema.access import ALL_ROWS, RowRule
from crosswind.data.schema.answers.explanations import Verdict

RUNS, TABLE = tables.runs, tables.run_verdicts
OF_RUN: Mapping[str, ColumnElement[Any]] = {
    "started": RUNS.c.listed_ns,
    "workload": RUNS.c.workload,
    "seconds": RUNS.c.ended_ns - RUNS.c.started_ns,
}
OF_VERDICT: Mapping[str, ColumnElement[Any]] = {
    "verdict": TABLE.c.verdict,
    "cause": TABLE.c.cause,
    "excess": TABLE.c.excess_seconds,
    "p50": TABLE.c.step_p50_seconds,
    "cov": TABLE.c.step_cov_ratio,
}
ORDERS: Mapping[str, ColumnElement[Any]] = {**OF_RUN, **OF_VERDICT}
NEWEST = "-started"
NO_CAUSE = "unexplained"  # in the place of a cause: slow runs without one


@dataclass(frozen=True)
class RunPlace:
    """The place of a run in a list: its value in the column that the list is sorted by, None where it has none."""

    value: str | float | None
    listed_ns: int
    run_id: str


@dataclass(frozen=True)
class Judged:
    """The number of runs with one verdict and one cause, and the seconds that they took beyond what was expected.

    `node_seconds` are those times the nodes of each run, where they are summed.
    """

    verdict: str | None  # None: not computed yet, or of a run in progress
    cause: str | None
    runs: int
    excess_seconds: float
    node_seconds: float | None = None

    @property
    def cause_or_none(self) -> str | None:
        """Return the cause, that of slow runs without one by its name."""
        return self.cause or (NO_CAUSE if self.verdict == Verdict.SLOW else None)


@dataclass(frozen=True)
class VerdictFilter:
    """The verdicts that are wanted, empty: any, and the main cause, None: any, or NO_CAUSE."""

    verdicts: Collection[str] = ()
    cause: str | None = None

    @property
    def conditions(self) -> list[ColumnElement[bool]]:
        """The conditions on the stored verdict."""
        verdicts = [TABLE.c.verdict.in_(self.verdicts)] if self.verdicts else []
        if self.cause == NO_CAUSE:
            return [*verdicts, and_(TABLE.c.verdict == Verdict.SLOW, TABLE.c.cause.is_(None))]
        return [*verdicts, *([TABLE.c.cause == self.cause] if self.cause else [])]


ANY_VERDICT = VerdictFilter()


class JudgedRuns:
    """Runs and the verdicts on them, over one connection; of those that the rule lets be seen."""

    def __init__(self, connection: Connection, rule: RowRule = ALL_ROWS) -> None:
        self._connection = connection
        self._rule = rule

    def find(
        self,
        wanted: RunFilter = ANY_RUN,
        judged: VerdictFilter = ANY_VERDICT,
        *,
        by: str = NEWEST,
        after: RunPlace | None = None,
        limit: int,
    ) -> list[RunPlace]:
        """Return the places of runs that match, those without a value last, the newest of them first.

        by: one of ORDERS, with a minus before it from the largest down; after: the place of the last one seen.
        """
        name, down = by.removeprefix("-"), by.startswith("-")
        began, run_id = wanted.place
        column, is_of_verdict = began if name == "started" else ORDERS[name], name in OF_VERDICT
        places: list[RunPlace] = []
        if after is None or after.value is not None:
            valued = self._matching(column, wanted, judged, is_joined=is_of_verdict).where(column.is_not(None))
            keys = column, TABLE.c.run_id if is_of_verdict else run_id
            if after is not None:
                here, last = tuple_(*keys), tuple_(after.value, after.run_id)
                valued = valued.where(here < last if down else here > last)
            places = self._places(valued.order_by(*(key.desc() if down else key for key in keys)).limit(limit))
            after = None
        if len(places) < limit:
            bare = self._matching(column, wanted, judged, is_joined=False).where(column.is_(None))
            if after is not None:
                bare = bare.where(tuple_(began, run_id) < tuple_(after.listed_ns, after.run_id))
            places += self._places(bare.order_by(*wanted.newest_first).limit(limit - len(places)))
        return places

    def counts(self, wanted: RunFilter = ANY_RUN) -> list[Judged]:
        """Return the runs that match by verdict and cause; those in progress may stand apart from others without.

        The seconds are of slow runs alone.
        """
        groups = [TABLE.c.verdict, TABLE.c.cause]
        if wanted == ANY_RUN and self._rule.sees_all:
            return self._counts_of_all()
        query = select(*groups, func.count(), _of_slow(TABLE.c.excess_seconds)).group_by(*groups)
        return self._rows_of(self._cut(query.select_from(_with_verdicts(is_joined=False)), wanted))

    def _counts_of_all(self) -> list[Judged]:
        """Return the counts of all runs; those of a verdict by an index alone, as rows take ten times as long."""
        verdict, cause = TABLE.c.verdict, TABLE.c.cause
        summed = select(verdict, cause, func.count(), _of_slow(TABLE.c.excess_seconds))
        judged = self._rows_of(summed.where(cause.is_not(None)).group_by(cause, verdict))  # in the order of an index
        judged += self._rows_of(summed.where(verdict == Verdict.SLOW, cause.is_(None)).group_by(verdict, cause))
        of_verdicts = self._connection.execute(select(verdict, func.count()).group_by(verdict))
        left = Counter({name: int(number) for name, number in of_verdicts})
        runs = int(self._connection.execute(select(func.count()).select_from(RUNS)).scalar_one())
        left[None] += runs - left.total()
        for one in judged:
            left[one.verdict] -= one.runs
        return [*judged, *(Judged(name, None, count, 0.0) for name, count in left.items() if count)]

    def newest(self, wanted: RunFilter, *, limit: int) -> list[Judged]:
        """Return the newest runs that match by verdict and cause, without those in progress.

        The seconds are of slow runs alone; a run whose nodes are not known counts as on one.
        """
        runs = select(RUNS.c.run_id, RUNS.c.nodes, RUNS.c.listed_ns)
        one = newest_seen(self._rule, filtered(runs, wanted), wanted.newest_first, limit).subquery().c
        nodes = case((func.json_array_length(one.nodes) > 0, func.json_array_length(one.nodes)), else_=1)
        sums = [_of_slow(part) for part in (TABLE.c.excess_seconds, TABLE.c.excess_seconds * nodes)]
        groups = [TABLE.c.verdict, TABLE.c.cause]
        joined = one.run_id.table.join(TABLE, TABLE.c.run_id == one.run_id)
        return self._rows_of(select(*groups, func.count(), *sums).select_from(joined).group_by(*groups))

    def _rows_of(self, query: Select[Any]) -> list[Judged]:
        return [Judged(*row) for row in self._connection.execute(query)]

    def _matching(
        self, column: ColumnElement[Any], wanted: RunFilter, judged: VerdictFilter, *, is_joined: bool
    ) -> Select[Any]:
        """`is_joined`: only runs with a row of verdicts."""
        query: Select[Any] = select(column, RUNS.c.listed_ns, RUNS.c.run_id)
        joined = _with_verdicts(is_joined=is_joined or bool(judged.conditions))
        return self._cut(query.select_from(joined), wanted).where(*judged.conditions)

    def _cut(self, query: Select[Any], wanted: RunFilter) -> Select[Any]:
        query = filtered(query, wanted)
        return query if self._rule.sees_all else query.where(of_seen_runs(self._rule, RUNS.c.run_id))

    def _places(self, query: Select[Any]) -> list[RunPlace]:
        return [RunPlace(*row) for row in self._connection.execute(query)]


def _of_slow(seconds: ColumnElement[float]) -> ColumnElement[float]:
    """Return the sum over slow runs alone."""
    return func.coalesce(func.sum(case((TABLE.c.verdict == Verdict.SLOW, seconds))), 0.0)


def _with_verdicts(*, is_joined: bool) -> Any:
    return RUNS.join(TABLE, TABLE.c.run_id == RUNS.c.run_id, isouter=not is_joined)
