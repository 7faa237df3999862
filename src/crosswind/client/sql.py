"""SQL over the rows that may be seen: of a store of this machine, or at a server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from crosswind.client.decoding import decode
from crosswind.data.schema.answers.sql import SqlAnswer, SqlTables
from crosswind.data.sql.limits import ROWS
from crosswind.data.sql.process import SqlProcesses
from crosswind.data.sql.stop import Stop

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crosswind.client.http import Server
    from crosswind.data.sql.statement import SqlRows, Statement
    from crosswind.data.store.store import Store

PATH = "/v1/sql"
T = TypeVar("T")


class Sql(Protocol):
    """One SELECT in DuckDB's SQL: `client.sql("select count(*) from runs")`."""

    def __call__(
        self, query: str, parameters: Sequence[object] | Mapping[str, object] = (), *, limit: int = ROWS
    ) -> SqlAnswer:
        """Return the first rows of a SELECT; `parameters` are values of its `?`, or by name of its `$name`.

        Raises: InvalidInputError saying what is wrong with it, or which limit it meets; UnavailableError.
        """
        ...

    def tables(self) -> SqlTables:
        """Return the tables that it may name, with their columns and units."""
        ...


@dataclass(frozen=True)
class LocalSql:
    """The `Sql` of a store."""

    store: Store
    processes: SqlProcesses = field(default_factory=SqlProcesses)

    def __call__(
        self, query: str, parameters: Sequence[object] | Mapping[str, object] = (), *, limit: int = ROWS
    ) -> SqlAnswer:
        """As `Sql`."""
        from crosswind.data.sql.statement import Statement  # noqa: PLC0415 - heavy
        from crosswind.data.sql.values import answer_of  # noqa: PLC0415

        return answer_of(self.rows(Statement(query, parameters, limit), Stop()))

    def rows(self, statement: Statement, stop: Stop) -> SqlRows:
        """Return the rows of a statement as Arrow has them, unless it is stopped. Raises: as `Sql`."""
        from crosswind.data.sql.statement import run  # noqa: PLC0415 - heavy

        return run(self.store, statement, self.processes, stop)

    def tables(self) -> SqlTables:
        """As `Sql.tables`."""
        from crosswind.data.sql.tables import described  # noqa: PLC0415 - heavy

        return described(self.store)


@dataclass(frozen=True)
class RemoteSql:
    """The `Sql` of a server."""

    server: Server

    def __call__(
        self, query: str, parameters: Sequence[object] | Mapping[str, object] = (), *, limit: int = ROWS
    ) -> SqlAnswer:
        """As POST /v1/sql."""
        values = dict(parameters) if hasattr(parameters, "keys") else list(parameters)
        return self._decoded(SqlAnswer, self.server.post(PATH, {"query": query, "parameters": values, "limit": limit}))

    def tables(self) -> SqlTables:
        """As GET /v1/sql."""
        return self._decoded(SqlTables, self.server.get(PATH))

    def _decoded(self, kind: type[T], said: Mapping[str, object]) -> T:
        try:
            return decode(kind, said)
        except ValueError as error:
            raise self.server.malformed(error) from error
