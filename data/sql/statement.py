"""One statement, from the question to its rows: a process plans it, gets the rows that it needs, and runs it."""

import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

import duckdb
import pyarrow as pa

from crosswind.data.schema.answers.sql import ReadTable
from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.schema.metric import MetricSet
from crosswind.data.sql import frames
from crosswind.data.sql.catalog_tables import CATALOG_TABLES, COMPARE
from crosswind.data.sql.limits import LIMITS, MIB, PARAMETERS_MAX, QUERY_MAX, ROWS, ROWS_MAX, SqlLimits
from crosswind.data.sql.plan import Condition, Wanted
from crosswind.data.sql.process import SqlProcess, SqlProcesses
from crosswind.data.sql.rows import Reader
from crosswind.data.sql.stop import Stop
from crosswind.data.sql.tables import dtype_of, tables_of
from crosswind.data.store.store import Store

Parameters = Sequence[object] | Mapping[str, object]


@dataclass(frozen=True)
class Statement:
    """A statement with the values of its parameters: of `?` a list, of `$name` by name; and how many rows to return.

    Raises: InvalidInputError when made, naming what is too much.
    """

    query: str
    parameters: Parameters = ()
    limit: int = ROWS

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= ROWS_MAX:
            raise InvalidInputError(f"limit {self.limit}: expected 1 to {ROWS_MAX} rows")
        if not self.query.strip() or len(self.query) > QUERY_MAX or not _is_text(self.query):
            raise InvalidInputError(f"query: expected 1 to {QUERY_MAX} characters of SQL, has {len(self.query)}")
        if len(self.parameters) > PARAMETERS_MAX:
            raise InvalidInputError(f"parameters: {len(self.parameters)} values, expected {PARAMETERS_MAX} at most")
        values = self.parameters.values() if isinstance(self.parameters, Mapping) else self.parameters
        for value in values:
            if not isinstance(value, str | int | float | bool | None) or not _is_text(value):
                raise InvalidInputError(f"parameters: {value!r:.60}, expected texts, numbers, booleans or nulls")


def _is_text(value: object) -> bool:
    """Return whether every database takes this value: a text without NUL and half characters, or no text."""
    return not isinstance(value, str) or ("\0" not in value and not any("\ud800" <= one <= "\udfff" for one in value))


@dataclass(frozen=True)
class SqlRows:
    """The rows of an answer, at most as many as were wanted, and what was read for them."""

    table: pa.Table
    is_complete: bool
    read: tuple[ReadTable, ...]
    seconds: float


def run(
    store: Store, statement: Statement, processes: SqlProcesses, stop: Stop, *, limits: SqlLimits = LIMITS
) -> SqlRows:
    """Return the rows of a statement over the tables that the store shows.

    Raises: InvalidInputError saying what is wrong with the statement, or which limit it meets; UnavailableError where
    no process can be started; MalformedError naming a damaged file.
    """
    began = time.monotonic()
    late = f"it took longer than {limits.seconds:g} s, and was stopped"
    timer = threading.Timer(limits.seconds, stop.stop, [late])
    timer.daemon = True
    timer.start()
    try:
        with _process(processes, stop) as process:
            table, read = _Asked(store, statement, limits, process, stop).answer()
    finally:
        timer.cancel()
    rows = table.slice(0, statement.limit)
    return SqlRows(rows, table.num_rows <= statement.limit, read, time.monotonic() - began)


@contextmanager
def _process(processes: SqlProcesses, stop: Stop) -> Iterator[SqlProcess]:
    """Yield a process; one that ends before its answer was stopped, or met a limit."""
    try:
        process = processes.take(stop)
    except OSError as error:
        raise UnavailableError(f"SQL: no process can be started for it: {error}") from error
    status = None
    try:
        yield process
    except (frames.EndedError, BrokenPipeError, duckdb.InterruptException) as error:
        status = process.close()
        raise InvalidInputError(f"query: {stop.reason or _ended(status)}") from error
    finally:
        if status is None:
            process.close()
        with suppress(OSError):
            processes.prepare()


def _ended(status: int) -> str:
    return f"its process ended ({f'signal {-status}' if status < 0 else f'status {status}'}) at a limit or by a fault"


@dataclass
class _Asked:
    """A statement in a process."""

    store: Store
    statement: Statement
    limits: SqlLimits
    process: SqlProcess
    stop: Stop
    left: int = 0

    def answer(self) -> tuple[pa.Table, tuple[ReadTable, ...]]:
        """Return up to one row more than wanted, and what was read."""
        tables = dict(tables_of(self.store))
        read = self._hand_over(_planned(self._ask(tables), tables), tables)
        kind, content = frames.receive(self.process.answer, 2 * self.limits.result_bytes + MIB)
        if kind == frames.FAILED:
            raise self._refused(content)
        return _table(content), read

    def _ask(self, tables: Mapping[str, MetricSet]) -> Mapping[str, Any]:
        """Return what the statement needs."""
        asked = {
            "query": self.statement.query,
            "parameters": self.statement.parameters,
            "limit": self.statement.limit,
            "limits": asdict(self.limits),
            "tables": {name: {one.name: dtype_of(one) for one in shown.columns} for name, shown in tables.items()},
        }
        frames.send_json(self.process.source, frames.QUESTION, asked)
        kind, content = frames.receive(self.process.answer, MIB)
        if kind != frames.PLAN:
            raise self._refused(content)
        return frames.parsed(content)

    def _hand_over(self, wanted: Sequence[Wanted], tables: dict[str, MetricSet]) -> tuple[ReadTable, ...]:
        """Send the rows of each table; those of the catalog with conditions first, whose runs bound the others."""
        reader = Reader(self.store, tables, self.stop.add)
        self.left = self.limits.handed_bytes
        read = []
        for one in sorted(wanted, key=lambda part: (part.table not in CATALOG_TABLES, not part.conditions)):
            read.append(ReadTable(one.table, self._hand_over_one(reader, one)))
        frames.send(self.process.source, frames.RUN, b"")
        return tuple(read)

    def _hand_over_one(self, reader: Reader, wanted: Wanted) -> int:
        """Send the rows of a table, and return how many there were."""
        source, left, rows = self.process.source, self.left, 0

        def begin(schema: pa.Schema) -> None:
            nonlocal rows
            rows, self.left = 0, left
            named = schema.with_metadata({frames.NAME: wanted.table})
            frames.send(source, frames.TABLE, named.serialize())

        def take(batch: pa.RecordBatch) -> None:
            nonlocal rows
            if self.stop.reason:
                raise frames.EndedError
            rows, self.left = rows + batch.num_rows, self.left - batch.nbytes
            if self.left < 0:
                raise InvalidInputError(self._too_much(wanted))
            frames.send(source, frames.BATCH, batch.serialize())

        reader.read(wanted, begin, take)
        return rows

    def _too_much(self, wanted: Wanted) -> str:
        named = "all columns" if wanted.columns is None else f"{len(wanted.columns)} columns"
        return (
            f"query: the rows of {wanted.table} that it needs ({named}) are more than the "
            f"{self.limits.handed_bytes // MIB} MiB that one statement gets: name fewer columns, or compare run_id, "
            f"node or ts_ns with values in `where`, or join `runs` by run_id with a condition on it"
        )

    def _refused(self, content: bytes) -> InvalidInputError:
        return InvalidInputError(f"query: {self.stop.reason or frames.parsed(content)['reason']!s:.2000}")


def _planned(said: Mapping[str, Any], tables: Mapping[str, MetricSet]) -> list[Wanted]:
    """Return what the process asks for: never more than the rows of these tables, which are cut for whoever asks."""
    try:
        return [_wanted(one, {column.name for column in tables[one["table"]].columns}) for one in said["wanted"]]
    except (KeyError, TypeError, ValueError) as error:
        raise frames.EndedError from error


def _wanted(one: Mapping[str, Any], names: Collection[str]) -> Wanted:
    columns = None if one["columns"] is None else tuple(map(str, one["columns"]))
    conditions = tuple(
        Condition(condition["column"], condition["operator"], tuple(condition["values"]))
        for condition in one["conditions"]
        if condition["column"] in names and condition["operator"] in ("=", *COMPARE)
    )
    limit = None if one["limit"] is None else int(one["limit"])
    return Wanted(one["table"], columns, conditions, tuple(map(str, one["runs_of"])), limit)


def _table(content: bytes) -> pa.Table:
    try:
        return pa.ipc.open_stream(pa.py_buffer(content)).read_all()
    except pa.ArrowException as error:
        raise frames.EndedError from error
