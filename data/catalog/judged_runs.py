"""Runs with their verdicts, sorted and filtered by either."""

from collections.abc import Collection
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select

from crosswind.data.catalog import tables
from crosswind.data.catalog.runs import ANY_RUN, RunFilter, filtered
from crosswind.data.catalog.seen import of_seen_runs
from crosswind.data.catalog.verdicts import VERDICT
from crosswind.data.schema.access import ALL_ROWS, RowRule
from crosswind.data.schema.run_verdict import RunVerdict

Order = Literal["verdict", "cause", "excess_seconds"]  # each by an index
After = tuple[str | float | None, str]  # value in the order's column, None where it has none, and run_id
TABLE = tables.run_verdicts


class JudgedRuns:
    """Verdicts of runs that have ended, over one connection; of those that the rule lets be seen."""

    def __init__(self, connection: Connection, rule: RowRule = ALL_ROWS) -> None:
        self._connection = connection
        self._rule = rule

    def find(
        self,
        wanted: RunFilter = ANY_RUN,
        verdicts: Collection[str] = (),
        *,
        by: Order = "excess_seconds",
        after: After | None = None,
        limit: int,
    ) -> list[RunVerdict]:
        """Return verdicts on runs that match, those with the largest value first, those without one last.

        verdicts: those that are wanted, empty: any; after: the place of the last one seen.
        """
        column = TABLE.c[by]
        query = self._matching(select(*VERDICT), wanted, verdicts)
        ranked: list[RunVerdict] = []
        if after is None or after[0] is not None:
            valued = query.where(column.is_not(None), *([] if after is None else [_beyond(column, after)]))
            ranked = self._verdicts(valued.order_by(column.desc(), TABLE.c.run_id.desc()).limit(limit))
            after = None
        if len(ranked) < limit:
            bare = query.where(column.is_(None), *([] if after is None else [TABLE.c.run_id < after[1]]))
            ranked += self._verdicts(bare.order_by(TABLE.c.run_id.desc()).limit(limit - len(ranked)))
        return ranked

    def counts(self, wanted: RunFilter = ANY_RUN) -> dict[str | None, int]:
        """Return how many of the runs that match have each verdict; None stands for those that have none yet."""
        query = self._matching(select(TABLE.c.verdict, func.count()), wanted, ()).group_by(TABLE.c.verdict)
        return {verdict: int(count) for verdict, count in self._connection.execute(query)}

    def _matching(self, query: Select[Any], wanted: RunFilter, verdicts: Collection[str]) -> Select[Any]:
        query = query.select_from(TABLE)
        if wanted != ANY_RUN:
            query = filtered(query.join(tables.runs, tables.runs.c.run_id == TABLE.c.run_id), wanted)
        if not self._rule.sees_all:
            query = query.where(of_seen_runs(self._rule, TABLE.c.run_id))
        return query.where(TABLE.c.verdict.in_(verdicts)) if verdicts else query

    def _verdicts(self, query: Select[Any]) -> list[RunVerdict]:
        return [RunVerdict(**row._asdict()) for row in self._connection.execute(query)]


def _beyond(column: ColumnElement[Any], after: After) -> ColumnElement[bool]:
    value, run_id = after
    return or_(column < value, and_(column == value, TABLE.c.run_id < run_id))
