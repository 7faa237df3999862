"""The row rule in SQL: which runs and studies somebody may see, and so which of what belongs to these."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, Table, and_, false, or_, select, true, union

from crosswind.data.catalog import tables
from crosswind.data.schema.access import RowRule

OWNER = {
    tables.runs.name: "user",
    tables.studies.name: "owner",
    tables.cohorts.name: "owner",
}  # the column of whoever a row belongs to


def is_seen(rule: RowRule, table: Table) -> ColumnElement[bool]:
    """Return the condition on runs, studies or saved cohorts that the rule lets its holder see."""
    return true() if rule.sees_all else or_(*ways(rule, table))


def is_own(rule: RowRule, table: Table) -> ColumnElement[bool]:
    """Return the condition on the same that the rule's holder may change: all that they see but shared ones."""
    return true() if rule.changes_all else or_(false(), *ways(rule, table)[1:])


def ways(rule: RowRule, table: Table) -> list[ColumnElement[bool]]:
    """Return the conditions of which one is enough: it is shared, or belongs to one of these; an index serves each."""
    conditions: list[ColumnElement[bool]] = [table.c.shared]
    if rule.users:
        conditions.append(table.c[OWNER[table.name]].in_(sorted(rule.users)))
    if rule.accounts:
        conditions.append(table.c.account.in_(sorted(rule.accounts)))
    if table is tables.runs:
        conditions += [and_(table.c.system == system, table.c.job_id == job) for system, job in sorted(rule.jobs)]
    return conditions


@dataclass(frozen=True)
class Belongs:
    """Whose a run or a study is; `job` is system and id of a run's job."""

    owner: str | None
    account: str | None
    shared: bool
    job: tuple[str | None, str | None] | None = None


def sees(rule: RowRule, whose: Belongs) -> bool:
    """Return what `is_seen` says in SQL, for a row that was read already and goes to many; a test compares both."""
    is_of_theirs = whose.owner in rule.users or whose.account in rule.accounts or whose.job in rule.jobs
    return rule.sees_all or whose.shared or is_of_theirs


def are_seen(rule: RowRule) -> ColumnElement[bool]:
    """Return the same condition on runs for questions about many: their cost does not grow with what others store."""
    return of_seen_runs(rule, tables.runs.c.run_id)


def of_seen_runs(rule: RowRule, run_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition that a row is of a run that may be seen."""
    runs = tables.runs
    seen = union(*(select(runs.c.run_id).where(way) for way in ways(rule, runs)))
    return true() if rule.sees_all else run_id.in_(seen)


def newest_seen(rule: RowRule, query: Select[Any], order: Sequence[ColumnElement[Any]], limit: int) -> Select[Any]:
    """Return the first rows, in this order, of a query of runs, cut by the rule.

    Each way to see a run gives its first ones, by its index, so that the cost does not grow with all that is stored.
    """
    first = query.order_by(*order).limit(limit)
    if rule.sees_all:
        return first
    run_id = tables.runs.c.run_id
    of_ways: list[FromClause] = [
        first.where(way).with_only_columns(run_id).subquery() for way in ways(rule, tables.runs)
    ]
    return first.where(run_id.in_(union(*(select(one.c.run_id) for one in of_ways))))
