"""Saved cohorts of runs in the catalog."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, delete, func, select, tuple_

from crosswind.data.catalog import rows, tables
from crosswind.data.catalog.keyset import part_of
from crosswind.data.catalog.runs import NEWEST_FIRST, PLACE, Runs, behind
from crosswind.data.catalog.seen import is_own, is_seen, newest_seen
from crosswind.data.schema.access import ALL_ROWS, RowRule
from crosswind.data.schema.errors import ForbiddenError, NotFoundError
from crosswind.data.schema.login import login_name
from crosswind.data.schema.part import Part
from crosswind.data.schema.run import Run
from crosswind.data.schema.saved_cohort import RunConditions, SavedCohort

TABLE, RUNS = tables.cohorts, tables.runs


class Cohorts:
    """Saved cohorts, over one connection; those, and of their members the runs, that the rule lets be seen."""

    def __init__(self, connection: Connection, rule: RowRule = ALL_ROWS) -> None:
        self._connection = connection
        self._rule = rule

    def add(self, cohort: SavedCohort) -> None:
        """Store a cohort, as the rule's user's or else this process's."""
        owned = {"owner": self._rule.user or login_name(), "account": self._rule.account}
        rows.add(self._connection, TABLE, {**cohort.as_row(), **owned})

    def get(self, cohort_id: str) -> SavedCohort:
        """Return one cohort. Raises: NotFoundError."""
        query = select(TABLE).where(TABLE.c.cohort_id == cohort_id, is_seen(self._rule, TABLE))
        row = self._connection.execute(query).mappings().first()
        if row is None:
            raise NotFoundError(f"cohort {cohort_id!r:.80} is not in the catalog")
        return SavedCohort.from_row(dict(row))

    def own(self, cohort_id: str) -> SavedCohort:
        """Return one that may be changed. Raises: NotFoundError; ForbiddenError for one that is merely shared."""
        cohort = self.get(cohort_id)
        query = select(func.count()).where(TABLE.c.cohort_id == cohort_id, is_own(self._rule, TABLE))
        if not self._connection.execute(query).scalar():
            raise ForbiddenError(f"cohort {cohort_id!r:.80} is another user's, and shared to be read")
        return cohort

    def find(self, part: Part) -> list[SavedCohort]:
        """Return a part of the cohorts in the order of (created_ns, cohort_id)."""
        query = part_of(select(TABLE).where(is_seen(self._rule, TABLE)), part, TABLE.c.created_ns, TABLE.c.cohort_id)
        return [SavedCohort.from_row(dict(row)) for row in self._connection.execute(query).mappings()]

    def share(self, cohort_id: str, *, shared: bool) -> SavedCohort:
        """Let everybody see a cohort, and of its members their own, or no longer. Raises: as `own`."""
        self.own(cohort_id)
        rows.change(self._connection, TABLE, {"cohort_id": cohort_id}, shared=shared)
        return self.get(cohort_id)

    def remove(self, cohort_id: str) -> None:
        """Remove a cohort; its runs stay. Raises: as `own`."""
        self.own(cohort_id)
        self._connection.execute(delete(TABLE).where(TABLE.c.cohort_id == cohort_id))

    def members(self, cohort: SavedCohort, part: Part) -> list[Run]:
        """Return a part of the members in the order of (started_ns, run_id), as `Runs.part`."""
        query = select(RUNS.c.run_id).where(self._is_member(cohort))
        return self._runs(behind(query, part), part)

    def others(self, cohort: SavedCohort, members: list[Run], *, limit: int) -> list[Run]:
        """Return the newest runs of the members' workloads and systems that are no members, newest first."""
        places = sorted({(run.system, run.workload) for run in members})
        is_alike = tuple_(RUNS.c.system, RUNS.c.workload).in_(places)
        query = select(RUNS.c.run_id).where(is_alike, ~self._is_member(cohort))
        return self._runs(query, Part(limit, descending=True))

    def _runs(self, query: Select[Any], part: Part) -> list[Run]:
        first = newest_seen(self._rule, query, NEWEST_FIRST if part.descending else PLACE, part.limit)
        run_ids = self._connection.execute(first.with_only_columns(RUNS.c.run_id)).scalars().all()
        places = {run_id: place for place, run_id in enumerate(run_ids)}
        return sorted(Runs(self._connection, self._rule).some(run_ids), key=lambda run: places[run.run_id])

    def _is_member(self, cohort: SavedCohort) -> ColumnElement[bool]:
        if cohort.run_ids is not None:
            return rows.among(self._connection, RUNS.c.run_id, cohort.run_ids)
        return and_(*_met(cohort.conditions or RunConditions()))


def _met(wanted: RunConditions) -> list[ColumnElement[bool]]:
    names = ("workload", "system", "state", "job_id")
    conditions = [RUNS.c[name] == value for name in names if (value := getattr(wanted, name)) is not None]
    if wanted.from_ns is not None:
        conditions.append(RUNS.c.listed_ns >= wanted.from_ns)
    if wanted.to_ns is not None:
        conditions.append(RUNS.c.listed_ns < wanted.to_ns)
    if wanted.verdict is not None:
        judged = tables.run_verdicts
        conditions.append(RUNS.c.run_id.in_(select(judged.c.run_id).where(judged.c.verdict == wanted.verdict)))
    return conditions
