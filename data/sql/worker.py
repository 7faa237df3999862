"""The process of one statement: it gets rows, runs the statement over them, and ends.

It starts without the environment of the server, takes limits on itself before it reads anything, and locks DuckDB: no
files, no extensions, no settings, no second statement. It holds nothing but the rows that it was handed.
"""

import io
import json
import os
import resource
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from typing import Any, BinaryIO

import duckdb
import pyarrow as pa

from crosswind.data.sql import frames
from crosswind.data.sql.limits import MIB
from crosswind.data.sql.plan import Planner, Tables

FIRST_BYTES = MIB  # of the question
PROCESS_BYTES = 1536 * MIB  # of addresses that the interpreter, its libraries and stacks of threads take
BATCH_ROWS = 2048
CANDIDATES = "Candidate bindings:"
LOCKED = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,  # no variables of this program as tables
    "temp_directory": "",
    "max_temp_directory_size": "0KB",
    "enable_object_cache": False,
}
Question = Mapping[str, Any]


class RefusedError(Exception):
    """A statement that cannot be run; the text is for whoever asked."""


def main() -> None:
    """Answer one question, over standard input and output, and end."""
    os.umask(0o077)
    source, answer = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else writes between the frames
    try:
        question: Question = json.loads(frames.receive(source, FIRST_BYTES)[1])
        confine(question["limits"])
        connection = locked_connection(question["limits"])
        try:
            result = _answered(connection, question, source, answer)
            frames.send(answer, frames.RESULT, result)
        except (RefusedError, duckdb.Error, MemoryError, RecursionError, ValueError, pa.ArrowException) as error:
            frames.send_json(answer, frames.FAILED, {"reason": _reason(error, question["tables"])})
    except (frames.EndedError, OSError):
        pass
    os._exit(0)  # without taking apart hundreds of megabytes


def confine(limits: Mapping[str, Any]) -> None:
    """Take limits on this process that end with it: memory, processor time, files and core dumps."""
    space = PROCESS_BYTES + limits["memory_bytes"] + 2 * limits["handed_bytes"]
    cpu_seconds = int(limits["seconds"] * limits["threads"]) + 5
    for kind, value in (
        (resource.RLIMIT_AS, space),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        most = resource.getrlimit(kind)[1]
        bound = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(kind, (bound, bound))


def locked_connection(limits: Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
    """Return a connection to an empty database in memory whose settings nobody can change any more."""
    bounds = {"threads": limits["threads"], "memory_limit": f"{limits['memory_bytes'] // MIB}MiB"}
    connection = duckdb.connect(":memory:", config={**LOCKED, **bounds})
    connection.execute("set lock_configuration = true")
    return connection


def _answered(
    connection: duckdb.DuckDBPyConnection, question: Question, source: BinaryIO, answer: BinaryIO
) -> memoryview:
    """Return the result as an Arrow stream, after the rows that it needs have come."""
    sql, parameters = question["query"], question["parameters"]
    planner = Planner(question["tables"], _by_name(parameters), question["limit"] + 1)
    wanted = planner.plan(_tree(connection, sql))
    frames.send_json(answer, frames.PLAN, {"wanted": [asdict(one) for one in wanted]})
    for name, table in _handed(source, question["limits"]["handed_bytes"] + FIRST_BYTES):
        connection.register(name, table)
    threading.Thread(target=_watch, args=(source,), daemon=True).start()
    rows = connection.sql(sql, params=parameters or None)
    if rows is None:
        raise RefusedError("it has no rows")
    return _first_rows(rows.to_arrow_reader(BATCH_ROWS), question["limit"] + 1, question["limits"]["result_bytes"])


def _tree(connection: duckdb.DuckDBPyConnection, sql: str) -> Mapping[str, Any]:
    """Return the syntax tree of the one SELECT. Raises: RefusedError."""
    kinds = [str(one.type).rpartition(".")[2] for one in connection.extract_statements(sql)]
    if kinds != ["SELECT"]:
        raise RefusedError(f"expected one SELECT, got {', '.join(kinds[:5]) or 'nothing'}")
    [(text,)] = connection.execute("select json_serialize_sql(?::varchar)", [sql]).fetchall()
    said: Mapping[str, Any] = json.loads(text)
    if said["error"]:
        raise RefusedError(f"expected one SELECT: {said['error_message']}")
    statement: Mapping[str, Any] = said["statements"][0]
    return statement


def _by_name(parameters: "Sequence[object] | Mapping[str, object]") -> Mapping[str, object]:
    """Return values by name; the first of a list is called 1."""
    if isinstance(parameters, Mapping):
        return parameters
    return {str(number): value for number, value in enumerate(parameters, start=1)}


def _handed(source: BinaryIO, limit_bytes: int) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables that come, until it is said that those were all; one that begins again replaces itself."""
    batches: dict[str, list[pa.RecordBatch]] = {}
    schemas: dict[str, pa.Schema] = {}
    name = ""
    while True:
        kind, content = frames.receive(source, limit_bytes)
        if kind == frames.RUN:
            break
        if kind == frames.TABLE:
            schema = pa.ipc.read_schema(pa.py_buffer(content))
            name = schema.metadata[frames.NAME].decode()
            schemas[name], batches[name] = schema, []
        else:
            batches[name].append(pa.ipc.read_record_batch(pa.py_buffer(content), schemas[name]))
    for name, schema in schemas.items():
        yield name, pa.Table.from_batches(batches[name], schema)


def _watch(source: BinaryIO) -> None:
    """End this process when whoever asked does not listen any more."""
    source.read(1)
    os._exit(1)


def _first_rows(reader: pa.RecordBatchReader, rows: int, limit_bytes: int) -> memoryview:
    """Return the first rows as an Arrow stream. Raises: RefusedError when they are too large."""
    stream, left = io.BytesIO(), rows
    with pa.ipc.new_stream(stream, reader.schema) as writer:
        for batch in reader:
            if batch.nbytes + stream.tell() > limit_bytes and batch.num_rows <= left:
                raise RefusedError(
                    f"the result has more than {limit_bytes // MIB} MiB: select fewer columns, or lower the limit"
                )
            writer.write_batch(batch.slice(0, left))
            left -= min(left, batch.num_rows)
            if not left:
                break
        if stream.tell() > limit_bytes:
            raise RefusedError(f"the result has more than {limit_bytes // MIB} MiB: lower the limit")
    return stream.getbuffer()


def _reason(error: BaseException, tables: Tables) -> str:
    if isinstance(error, MemoryError | pa.ArrowMemoryError | duckdb.OutOfMemoryException):
        return "it needs more memory than one statement gets: name fewer rows, or put fewer together"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, duckdb.BinderException) and CANDIDATES in str(error):
        return f"{str(error).partition(CANDIDATES)[0].rstrip()} {_columns(str(error), tables)}"
    return str(error)


def _columns(said: str, tables: Tables) -> str:
    """Return where a column of the name is, as the tables that were handed over lack columns that nobody named."""
    name = said.partition('"')[2].partition('"')[0].lower()
    among = sorted({column for columns in tables.values() for column in columns})
    near = get_close_matches(name, among, n=5) or among[:0]
    places = [f"{table}.{column}" for table, columns in tables.items() for column in columns if column in near]
    return f"Near to it: {', '.join(places[:20])}" if places else "The table `columns` lists all columns"


if __name__ == "__main__":
    main()
