"""The lake: one Parquet dataset per metric set, `set=…/date=…/part-….parquet`, queried by DuckDB in process.

A part appears by atomic rename, so a reader never sees half a file. Its name comes from the batch it was part of, so
that writing a batch again replaces the same files and doubles nothing; also once it was compacted (`parts`). Beside
the parts stands one file without rows, `set=…/_schema-….parquet`, for every way in which the set's columns were ever
defined: their union is what queries see.
"""

import array
import copy
import glob
import hashlib
import json
import os
import re
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crosswind.data.lake.instance import new_connection
from crosswind.data.lake.locks import begin_reading, make_lock, reading
from crosswind.data.lake.parquet import by_date, sorted_rows, write_parquet
from crosswind.data.lake.parts import ALWAYS, COMPACTED, Span
from crosswind.data.lake.publish import Staged, drop, hidden_name
from crosswind.data.lake.skipped import Skipped, is_gone
from crosswind.data.lake.storage import Filed, LocalStorage, Published, Storage
from crosswind.data.schema.errors import InvalidInputError, MalformedError, NotFoundError
from crosswind.data.schema.keeping import ROLLUP
from crosswind.data.schema.metric import Column, Kind, MetricSet, Scalar
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.steps import LOOP_SETS

if TYPE_CHECKING:  # heavy, and needed by the frames alone
    import pandas as pd

ARROW_TYPES = {
    "int64": pa.int64(),
    "uint64": pa.uint64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
}
PLAIN = {"int64": (int, "q"), "uint64": (int, "Q"), "float64": (float, "d")}  # codes of the standard library's arrays
BUILT_IN = LOOP_SETS  # queries may name these before anything was stored
PART_NAME = re.compile(r"[0-9a-zA-Z_-]{1,80}")
UNREADABLE = (duckdb.IOException, duckdb.InvalidInputException, FileNotFoundError)
LOOKS = 5  # at a folder while its files are replaced by others
ACCEPTED = 1000
WORD = re.compile(r"[a-z0-9_]+")
Answer = TypeVar("Answer")


@lru_cache(maxsize=500)
def arrow_schema(metric_set: MetricSet) -> pa.Schema:
    """The set's Arrow schema; units and scales stand in the fields' metadata, the whole set in the schema's."""
    return pa.schema(
        [pa.field(column.name, ARROW_TYPES[column.dtype], metadata=_metadata(column)) for column in metric_set.columns],
        metadata={"crosswind.set": json.dumps(metric_set.as_json())},
    )


def _metadata(column: Column) -> dict[str, str]:
    facts = {"description": column.description, "unit": column.unit, "kind": column.kind, "scale": repr(column.scale)}
    return {**facts, "width_bits": str(column.width_bits), "on_full": column.on_full}


def to_table(metric_set: MetricSet, columns: Mapping[str, Sequence[Scalar]]) -> pa.Table:
    """An Arrow table of the set from columns of plain values; a column that is not given is null.

    Raises: MalformedError when a column is unknown, of another length, or holds a value of another type.
    """
    schema = arrow_schema(metric_set)
    if "ts_ns" not in columns or None in columns["ts_ns"]:
        raise MalformedError(f"metric set {metric_set.name}: expected a ts_ns in every row")
    unknown = sorted(set(columns) - set(schema.names))
    if unknown:
        raise MalformedError(f"metric set {metric_set.name}: unknown columns {', '.join(unknown)}")
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise MalformedError(f"metric set {metric_set.name}: columns of unequal length {lengths}")
    length = next(iter(lengths.values()), 0)
    arrays = [_array(metric_set.name, column, columns.get(column.name), length) for column in metric_set.columns]
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(set_name: str, column: Column, values: Sequence[Scalar] | None, length: int) -> pa.Array:
    arrow_type = ARROW_TYPES[column.dtype]
    if values is None:
        return pa.nulls(length, arrow_type)
    kinds = set(map(type, values))
    try:
        kind, code = PLAIN.get(column.dtype, (None, ""))
        if kinds == {kind}:  # three times as fast as Arrow's own way
            numbers: Any = values
            buffer = pa.py_buffer(array.array(code, numbers))
            return pa.Array.from_buffers(arrow_type, length, [None, buffer])
        if pa.types.is_integer(arrow_type) and any(issubclass(kind, float) for kind in kinds):
            raise pa.ArrowTypeError("a fraction is among the values")  # which Arrow would cut off
        return pa.array(values, type=arrow_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError) as error:
        raise MalformedError(f"{set_name}.{column.name}: expected {column.dtype}: {error!s:.200}") from error


class Lake:
    """The Parquet datasets below one folder, or in another storage with copies there."""

    def __init__(self, root: Path, storage: Storage | None = None) -> None:
        self.root = root
        self.storage: Storage = storage or LocalStorage(root)
        self.skipped: Skipped | None = None  # damaged files; without it they end a query
        self.around: Callable[[], AbstractContextManager[object]] = nullcontext  # a query, for whoever watches them
        self.turn = threading.Lock()  # held while computing what to store: threads that compete for the interpreter
        # cost a quarter more processor time and are no faster
        self._accepted: set[tuple[tuple[Path, ...], str]] = set()  # sets held against these definitions before
        self._defined: dict[Path, MetricSet] = {}  # what the definitions say, which never change
        self._cut: Callable[[Lake, str, str], str] | None = None

    @property
    def damaged(self) -> int:
        """Number of damaged files that queries pass over."""
        return 0 if self.skipped is None else self.skipped.count

    @property
    def is_cut(self) -> bool:
        """Return whether queries see some rows only."""
        return self._cut is not None

    def through(self, cut: "Callable[[Lake, str, str], str]") -> "Lake":
        """Return the same lake for queries that see some rows of some sets only.

        `cut` returns, in SQL, the rows of a set that may be seen: of the lake, the set's name, and its files in SQL.
        """
        lake = copy.copy(self)
        lake._cut = cut
        return lake

    def append(self, part: str, table: pa.Table) -> list[Path]:
        """Writes a set's rows as one part a day; the same part name replaces what it wrote before.

        Raises: InvalidInputError for a part or set name that is no plain name, or rows without a time.
        """
        return self.append_all({part: table})

    def append_all(self, tables: Mapping[str, pa.Table]) -> list[Path]:
        """Writes several tables as `append` does, each under its part name, and returns when all are on the disk.

        Raises: as `append`; MalformedError for a set that contradicts what is stored.
        """
        published = self.publish(self.stage(tables))
        self.storage.note(published)
        return list(published.paths)

    def stage(self, tables: Mapping[str, pa.Table]) -> list[Staged]:
        """The first half of `append_all`, which computes: files where no query looks. Raises: as `append_all`."""
        staged: list[Staged] = []
        try:
            for part, table in tables.items():
                staged.extend(self._staged(part, table))
        except BaseException:
            drop(staged)
            raise
        return staged

    def publish(self, staged: Sequence[Staged]) -> Published:
        """The other half, which waits for the disk: queries find the files once their batch is noted with them.

        In a local folder they do so already. Raises: OSError, UnavailableError.
        """
        return self.storage.publish(staged)

    def remove(self, parts: Iterable[str]) -> None:
        """Removes parts that were published by somebody who was killed before noting it. Raises: OSError."""
        self.storage.remove(parts)

    def _staged(self, part: str, table: pa.Table) -> Iterator[Staged]:
        """Writes the table's files under hidden names; hidden name and name of each."""
        metric_set = set_of(table.schema)
        if not PART_NAME.fullmatch(part) or COMPACTED.fullmatch(f"part-{part}.parquet"):
            raise InvalidInputError(f"part {part!r:.120}: expected letters, digits, - and _")
        self.check(metric_set)
        folder = self._folder(metric_set.name)
        yield from self._staged_definitions(metric_set)
        for date, rows in by_date(table):
            yield self._hidden(folder / f"date={date}" / f"part-{part}.parquet", sorted_rows(rows), metric_set)

    def _staged_definitions(self, metric_set: MetricSet) -> Iterator[Staged]:
        for declared, definition in self._undefined(metric_set):
            make_lock(self.root)
            yield self._hidden(definition, arrow_schema(declared).empty_table(), declared)

    def define(self, metric_set: MetricSet) -> Path:
        """Store what the columns of a set are, unless that is stored, and return its folder. Raises: OSError."""
        if staged := list(self._staged_definitions(metric_set)):
            self.storage.note(self.publish(staged))
        return self._folder(metric_set.name)

    def _undefined(self, metric_set: MetricSet) -> Iterator[tuple[MetricSet, Path]]:
        """Definitions of a set, and of ours of its name, that are not stored yet, and where they shall be."""
        for declared in [metric_set, *(built_in for built_in in BUILT_IN if built_in.name == metric_set.name)]:
            if not self._is_defined(declared):
                yield declared, self._definition(declared)

    def _is_defined(self, metric_set: MetricSet) -> bool:
        definition = self._definition(metric_set)
        return definition in self._defined or self.storage.is_defined(definition)

    def _definition(self, metric_set: MetricSet) -> Path:
        return self._folder(metric_set.name) / f"_schema-{_digest(metric_set)}.parquet"

    def defined_folder(self, metric_set: MetricSet) -> Path:
        """The folder of a set that is defined here. Raises: MalformedError where it is not, or contradicts that."""
        self.check(metric_set)
        if any(self._undefined(metric_set)):
            raise MalformedError(f"metric set {metric_set.name}: expected one that was stored before")
        return self._folder(metric_set.name)

    def _hidden(self, path: Path, table: pa.Table, metric_set: MetricSet) -> Staged:
        """Writes a file where no query looks; where it is, and where it shall be."""
        hidden = hidden_name(self.root, path)
        write_parquet(table, hidden, metric_set)
        return hidden, path

    def check(self, metric_set: MetricSet, others: Iterable[MetricSet] = ()) -> None:
        """Accepts a set that says the same of its columns as what is stored, so that both can be read together.

        `others` are sets about to be stored with it.
        Raises: MalformedError naming the column that became something else.
        """
        if ROLLUP.fullmatch(metric_set.name):
            raise MalformedError(f"metric set {metric_set.name}: expected another name, roll-ups have such names")
        if "ts_ns" not in {column.name for column in metric_set.columns} or metric_set["ts_ns"].dtype != "int64":
            raise MalformedError(f"metric set {metric_set.name}: expected an int64 column ts_ns")
        others = [other for other in others if other.name == metric_set.name and other is not metric_set]
        if not others and self._is_defined(metric_set):
            return  # it was held against all others before its definition was stored
        definitions = tuple(self._definitions(metric_set.name))
        comparison = definitions, _digest(metric_set)
        if not others and comparison in self._accepted:
            return
        columns = self.columns(metric_set.name)
        columns |= {column.name: column for other in others for column in other.columns}
        for column in metric_set.columns:
            stored = columns.get(column.name, column)
            if not is_compatible(stored, column):
                raise MalformedError(
                    f"{metric_set.name}.{column.name}: {column.dtype} x {column.scale!r}, "
                    f"but what is stored is {stored.dtype} x {stored.scale!r}"
                )
        if not others and definitions:
            self._accepted = {*self._accepted, comparison} if len(self._accepted) < ACCEPTED else {comparison}

    def columns(self, name: str) -> dict[str, Column]:
        """Every column that the set ever had here, by name, as it was last defined."""
        return {column.name: column for metric_set in self.defined(name) for column in metric_set.columns}

    def defined(self, name: str) -> list[MetricSet]:
        """Return the set as it was ever defined here, the newest last; those that we know before any was stored."""
        sets = [metric_set for metric_set in BUILT_IN if metric_set.name == name]
        paths = self._definitions(name)
        if not paths and not sets:
            parts = self.storage.parts(name)[-1:]
            paths = self._definitions(name) or parts  # which somebody else has stored meanwhile with the definition
        aged = sorted(paths, key=lambda path: (self._defined_in(path).version, path.stat().st_mtime_ns))
        return sets + [self._defined_in(path) for path in aged]

    def _defined_in(self, path: Path) -> MetricSet:
        metric_set = self._defined.get(path)
        if metric_set is None:
            metric_set = set_of(pq.read_schema(path))
            if path.name.startswith("_schema-"):
                self._defined[path] = metric_set
        return metric_set

    def _definitions(self, name: str) -> list[Path]:
        paths = self.storage.definitions(name)
        return paths if self.skipped is None else self.skipped.whole(paths)

    def _folder(self, name: str) -> Path:
        return self.root / f"set={name}"

    def sets(self) -> list[str]:
        """Names of the sets that hold rows, without roll-ups."""
        return [name for name in self.storage.sets() if not ROLLUP.fullmatch(name)]

    def frame(self, sql: str, parameters: Sequence[object] = (), *, within: Span = ALWAYS) -> "pd.DataFrame":
        """The answer to a query in which every set is a view of its name, converted to base units.

        Files that hold nothing of the time `within` are not opened; the query says itself which rows it wants. Sets
        that the query does not name are not looked at: a damaged file in one leaves queries of others alone.
        Raises: MalformedError naming the file that is damaged.
        """
        frame: pd.DataFrame = self._answer(sql, parameters, within, lambda connection: connection.df())
        return frame

    def arrays(self, sql: str, parameters: Sequence[object] = (), *, within: Span = ALWAYS) -> dict[str, Floats]:
        """The answer to a query for numbers alone, each column of shape (n_rows,), NaN = missing; else as `frame`.

        Of millions of rows a frame costs as much again as the query.
        """
        columns = self._answer(sql, parameters, within, lambda connection: connection.fetchnumpy())
        return {name: np.ma.filled(np.ma.asarray(values, np.float64), np.nan) for name, values in columns.items()}

    def table(self, sql: str, parameters: Sequence[object] = (), *, within: Span = ALWAYS) -> pa.Table:
        """The answer to a query as an Arrow table; else as `frame`."""
        names = set(WORD.findall(sql.lower()))

        def ask(connection: duckdb.DuckDBPyConnection) -> pa.Table:
            self._add_views(connection, names, within)
            return connection.sql(sql, params=list(parameters)).to_arrow_table()

        return self.answer(ask)

    def _answer(
        self, sql: str, parameters: Sequence[object], within: Span, fetch: Callable[[duckdb.DuckDBPyConnection], Any]
    ) -> Any:
        names = set(WORD.findall(sql.lower()))

        def ask(connection: duckdb.DuckDBPyConnection) -> Any:
            self._add_views(connection, names, within)
            return fetch(connection.execute(sql, list(parameters)))

        return self.answer(ask)

    def answer(self, ask: Callable[[duckdb.DuckDBPyConnection], Answer]) -> Answer:
        """Return what is answered to a connection without views; asked again when files were replaced meanwhile.

        Raises: MalformedError naming the file that is damaged, unless it is passed over.
        """
        self.storage.make_room()
        for look in range(1, LOOKS + 1):
            try:
                with self.around(), reading(self.root), new_connection() as connection:
                    return ask(connection)
            except (duckdb.Error, FileNotFoundError) as error:
                if look < LOOKS and (is_gone(error) or self._has_skipped_more()):
                    continue
                if isinstance(error, UNREADABLE):
                    raise MalformedError(f"lake {self.root} cannot be read: {error!s:.400}") from error
                raise
        raise AssertionError("the last look returns or raises")

    def _has_skipped_more(self) -> bool:
        """Return whether damaged files were found that nobody passed over before, among those that are here."""
        if self.skipped is None:
            return False
        paths = (file.path for name in self.storage.sets() for file in self.storage.listed(name))
        return self.skipped.look_into(self.skipped.whole(path for path in paths if path.exists()))

    def counters(
        self,
        name: str,
        wanted: Sequence[str],
        *,
        where: str = "true",
        parameters: Sequence[object] = (),
        within: Span = ALWAYS,
    ) -> pa.Table:
        """Columns of a set as they were stored, exact, and what their differences need: keys, epochs, clocks, ranges.

        `where` is SQL over the set's columns, as stored too; the table carries the set's definition.
        Raises: NotFoundError when nothing of the set or no such column is stored; MalformedError naming the file that
        is damaged.
        """
        kept = self.needed(name, wanted).values()
        names = ", ".join(f'"{column.name}"' for column in kept)

        def ask(connection: duckdb.DuckDBPyConnection) -> pa.Table:
            sql = f"select {names} from {self.files(name, within)} where {where}"  # noqa: S608 - checked identifiers
            table: pa.Table = connection.sql(sql, params=list(parameters)).to_arrow_table()
            return table.cast(arrow_schema(MetricSet(name, "", tuple(kept))))

        return self.answer(ask)

    def needed(self, name: str, wanted: Sequence[str]) -> dict[str, Column]:
        """Return the columns of a set that the differences of some need. Raises: NotFoundError for one not stored."""
        columns = self.columns(name) if name in self.sets() else {}
        missing = [column for column in wanted if column not in columns]
        if missing or not columns:
            raise NotFoundError(f"lake {self.root} holds no {name}.{missing[0] if missing else '*'}")
        needed = {*wanted, *(columns[column].range_from for column in wanted), "mono_ns"}
        return {
            column.name: column
            for column in columns.values()
            if column.name in needed or column.kind in (Kind.KEY, Kind.EPOCH)
        }

    def connect(self, names: Collection[str] | None = None, *, within: Span = ALWAYS) -> duckdb.DuckDBPyConnection:
        """A DuckDB connection with one view a set, of these names or of all: raw values x scale, null where missing.

        No file that it reads is removed by compaction for as long as anybody holds it.
        """
        self.storage.make_room()
        fd = begin_reading(self.root)
        connection = new_connection()
        if fd is not None:
            weakref.finalize(connection, os.close, fd)
        every = (*self.sets(), *(metric_set.name for metric_set in BUILT_IN))
        self._add_views(connection, every if names is None else names, within)
        return connection

    def _add_views(self, connection: duckdb.DuckDBPyConnection, names: Collection[str], within: Span) -> None:
        stored = self.sets()
        for metric_set in BUILT_IN:
            if metric_set.name in names and metric_set.name not in stored:
                connection.register(metric_set.name, arrow_schema(metric_set).empty_table())
        for name in stored:
            if name in names:
                columns = ", ".join(map(converted, self.columns(name).values()))
                source = f"select {columns} from {self.files(name, within)}"  # noqa: S608 - checked identifiers
                connection.execute(f'create or replace temp view "{name}" as {source}')

    def files(self, name: str, within: Span = ALWAYS) -> str:
        """The set's files as SQL reads them, raw: those that may hold rows of that time; and rows that may be seen."""
        files = self.source(name, self.parts(name, within)) or sql_files(self.parts(name)[-1:])
        return self._cut(self, name, files) if self._cut else files

    def files_among(self, name: str, files: Sequence[Filed]) -> str:
        """Return these parts of a set as `files` does."""
        self.storage.fetch(files)
        paths = [file.path for file in files]
        whole = paths if self.skipped is None else self.skipped.whole(paths)
        source = self.source(name, whole) or sql_files(self.parts(name)[-1:])
        return self._cut(self, name, source) if self._cut else source

    def parts(self, name: str, within: Span = ALWAYS, run_ids: Collection[str] | None = None) -> list[Path]:
        """The parts that may hold rows of that time and of one of those runs. Raises: MalformedError."""
        paths = self.storage.parts(name, within, run_ids)
        return paths if self.skipped is None else self.skipped.whole(paths)

    def days(self, name: str) -> list[Path]:
        """The folders of a set's days, in order."""
        return [self._folder(name) / f"date={date}" for date in self.storage.dates(name)]

    def source(self, name: str, paths: Iterable[Path]) -> str:
        """Some parts of a set as SQL reads them, raw, with every column that the set has; empty where it has none."""
        files = [*self._definitions(name), *paths]
        return sql_files(files) if files else ""


def sql_files(paths: Iterable[Path]) -> str:
    """Parquet files as SQL reads them."""
    names = [glob.escape(str(path)).replace("'", "''") for path in paths]
    files = ", ".join(f"'{name}'" for name in names)
    return f"read_parquet([{files}], union_by_name = true, hive_partitioning = false)"


def is_compatible(stored: Column, column: Column) -> bool:
    """Return whether values of both can stand in one column."""
    return (stored.dtype, stored.scale) == (column.dtype, column.scale)


@lru_cache(maxsize=500)
def _digest(metric_set: MetricSet) -> str:
    return hashlib.sha256(json.dumps(metric_set.as_json()).encode()).hexdigest()[:16]


def set_of(schema: pa.Schema) -> MetricSet:
    """The set that a table's schema carries. Raises: InvalidInputError."""
    try:
        return _set_in(schema.metadata[b"crosswind.set"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInputError("table carries no metric set: make it with to_table") from error


@lru_cache(maxsize=500)
def _set_in(metadata: bytes) -> MetricSet:
    return MetricSet.from_json(json.loads(metadata))


def converted(column: Column) -> str:
    """A column of a set in its base unit, as SQL reads it."""
    quoted = f'"{column.name}"'
    return quoted if column.scale == 1.0 else f"{quoted} * {column.scale!r}::double as {quoted}"
