"""A store of this machine with what is computed over it, and the parts of a client that stand for themselves."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Self

from crosswind.client.compute import Compute, Explain, compute_anew, explain_anew
from crosswind.client.fitted import Fitted
from crosswind.client.installed_store import open_store
from crosswind.data.store.store import Store

if TYPE_CHECKING:  # as in `local`
    from collections.abc import Callable
    from types import TracebackType

    from crosswind.client.cohorts import LocalCohorts
    from crosswind.client.fleet import LocalFleet
    from crosswind.client.own_rows import LocalRows
    from crosswind.client.sql import LocalSql
    from crosswind.client.tables.tables import Tables
    from crosswind.data.schema.access import RowRule
    from crosswind.data.sql.process import SqlProcesses
    from crosswind.models.shared_work import SharedWork
    from crosswind.models.tuner.service.catalog import CatalogStudyService
    from crosswind.settings import Settings


class LocalParts:
    """A store, its caches and models, and clients of it for several askers.

    `compute` answers questions about the whole store and `explain_runs` explains runs: a server puts a cache there.
    Clients of one store for several askers share what is `fitted` on it; without it a client fits its own.
    A server keeps `sql_processes` ready.
    """

    def __init__(
        self,
        store: Store,
        *,
        compute: Compute = compute_anew,
        explain_runs: Explain = explain_anew,
        fitted: Fitted | None = None,
        sql_processes: SqlProcesses | None = None,
    ) -> None:
        self.store = store
        self.compute = compute
        self.explain_runs = explain_runs
        self.fitted = fitted or Fitted(store)
        self.sql_processes = sql_processes

    @classmethod
    def open(cls, settings: Settings, notice: Callable[[str], None] = lambda _: None) -> Self:
        """Return the client of an installation's store. Raises: UnavailableError, MalformedError."""
        store = open_store(settings)
        return cls(store, fitted=Fitted(store, intensity=lambda: settings.intensity, notice=notice))

    def with_compute(self, compute: Compute) -> Self:
        """Return a client of the same store and models with another cache."""
        return self._like(self.store, compute)

    def seen_by(self, rule: RowRule) -> Self:
        """Return a client with the same models whose answers show the rows alone that the rule lets be seen."""
        if rule == self.store.rule:
            return self
        return self._like(self.store.seen_by(rule), self.compute)

    def _like(self, store: Store, compute: Compute) -> Self:
        return type(self)(
            store,
            compute=compute,
            explain_runs=self.explain_runs,
            fitted=self.fitted,
            sql_processes=self.sql_processes,
        )

    @cached_property
    def studies(self) -> CatalogStudyService:
        """The studies in the store's catalog."""
        return self.fitted.studies_of(self.store)

    @cached_property
    def _shared(self) -> SharedWork:
        """Work that several threads of a server ask for at once."""
        from crosswind.models.shared_work import SharedWork

        return SharedWork()

    @property
    def own(self) -> LocalRows:
        """The acts on rows that are one's own."""
        from crosswind.client.own_rows import LocalRows

        return LocalRows.of_process(self.store)

    @property
    def sql(self) -> LocalSql:
        """SQL over the rows that the store shows."""
        from crosswind.client.sql import LocalSql

        return LocalSql(self.store, *([self.sql_processes] if self.sql_processes else []))

    @property
    def tables(self) -> Tables:
        """Whole lists as tables."""
        from crosswind.client.tables.tables import LocalTables

        return LocalTables(self.store, self.studies.trials, self.fleet.series)

    @property
    def fleet(self) -> LocalFleet:
        """Systems, their nodes and stored metrics."""
        from crosswind.client.fleet import LocalFleet

        return LocalFleet(self.store, self.compute)

    @property
    def cohorts(self) -> LocalCohorts:
        """Saved selections of runs."""
        from crosswind.client.cohorts import LocalCohorts

        return LocalCohorts(self.store, self.compute)

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
