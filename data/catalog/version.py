"""The version of a catalog: a text that changes with whatever is committed to it, and costs next to nothing."""

import threading
from typing import Any

from sqlalchemy import Engine, text

from crosswind.data.schema.run import new_ulid


class CatalogVersion:
    """Tells states of a database apart; for several threads.

    In PostgreSQL it is the snapshot that a query would see now: two that are equal see the same. In SQLite it counts
    commits of others as one connection sees them, and so is of use to one process.

    Source: postgresql.org, "pg_current_snapshot"; sqlite.org/pragma.html#pragma_data_version.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._process = new_ulid()
        self._connection: Any = None  # of SQLite, which commits nothing itself

    def __call__(self) -> str:
        """Return the present version; what is read afterwards is of it, or newer. Raises: what NO_ANSWER holds."""
        if self._engine.dialect.name == "postgresql":
            with self._engine.connect() as connection:
                return str(connection.execute(text("select pg_current_snapshot()::text")).scalar_one())
        with self._lock:
            [commits] = self._own().execute("pragma data_version").fetchone()
        return f"{self._process} {commits}"

    def close(self) -> None:
        """Give back its connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _own(self) -> Any:
        if self._connection is None:
            connection = self._engine.connect()
            self._connection = connection.connection.driver_connection
            connection.detach()
        return self._connection.cursor()
