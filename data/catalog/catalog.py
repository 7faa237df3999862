"""The catalog's door: sessions that read, and sessions that write in one transaction."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, text

from crosswind.data.catalog import rows, tables
from crosswind.data.catalog.runs import Jobs, Runs
from crosswind.data.catalog.studies import Studies


class Session:
    """Everything in the catalog, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.runs = Runs(connection)
        self.jobs = Jobs(connection)
        self.studies = Studies(connection)

    def has_batch(self, batch_id: str) -> bool:
        """Whether this batch was ingested before."""
        return rows.fetch(self._connection, tables.ingest_batches, batch_id=batch_id) is not None

    def add_batch(self, batch_id: str, origin: str, *, row_count: int, skipped: int) -> None:
        """Notes that a batch is stored; together with what else the session writes, or not at all."""
        facts = {"batch_id": batch_id, "origin": origin, "rows": row_count, "skipped": skipped}
        rows.add(self._connection, tables.ingest_batches, {**facts, "received_ns": time.time_ns()})


class Catalog:
    """Sessions over one database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._reading = engine.execution_options(writes=False)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session that only looks."""
        with self._reading.connect() as connection:
            yield Session(connection)

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A session whose changes are all kept at its end, or none when it raises."""
        with self._engine.begin() as connection:
            yield Session(connection)

    def check(self) -> None:
        """Asks the database for one answer. Raises: sqlalchemy.exc.OperationalError."""
        with self._reading.connect() as connection:
            connection.execute(text("select 1"))

    def close(self) -> None:
        """Gives back every connection."""
        self._engine.dispose()
