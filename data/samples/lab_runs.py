"""Our own measured runs with their known injected faults; data/samples/lab/README.md says how they came about.

Parquet files of one folder: `runs`, `ranks` and `injections` of the catalog, and one file for each metric set, raw as
the lake keeps it. Columns that held nothing are left out, and are null again once they are loaded.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from crosswind.data.lake.lake import arrow_schema, set_of
from crosswind.data.schema.errors import ConflictError, UnavailableError
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.injection import Injected
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.store.store import Store

ORIGIN = "data/samples/lab"
CATALOG = ("runs", "ranks", "injections")  # the other files are metric sets
JSON_FIELDS = ("configuration", "nodes", "command", "software", "tags", "facts")
COMPRESSION = {"compression": "zstd", "compression_level": 19}
Record = TypeVar("Record", Run, Rank, Injected)


def load_lab_samples(store: Store) -> int:
    """Stores the sample runs, once; how many runs came new.

    Raises: UnavailableError when the package holds no such samples; ConflictError as `load_lab_runs`.
    """
    with as_file(files("crosswind.data.samples") / "lab") as folder:
        return load_lab_runs(store, folder)


def lab_parts() -> dict[str, pa.Table]:
    """Return the rows of the sample runs by the names of their parts in the lake."""
    with as_file(files("crosswind.data.samples") / "lab") as folder:
        paths = sorted(folder.glob("*.parquet"))
        return _parts(paths, _digest(paths))


def load_lab_runs(store: Store, folder: Path) -> int:
    """Stores the runs of a folder that `crosswind lab export` wrote, once; how many runs came new.

    Raises: UnavailableError; ConflictError when one of the runs came by other means, such as from the store that they
    were exported from, or from a folder of before: its rows would be there twice.
    """
    paths = sorted(folder.glob("*.parquet"))
    if not set(CATALOG) <= {path.stem for path in paths}:
        raise UnavailableError(f"{folder}: expected {', '.join(CATALOG)} as .parquet: crosswind lab export writes them")
    identity = _digest(paths)
    runs = records_of(Run, pq.read_table(folder / "runs.parquet"))
    with store.catalog.read() as session:
        if session.has_batch(identity):
            return 0
        if stored := session.runs.stored(run.run_id for run in runs):
            raise ConflictError(f"{folder}: run {stored[0]} is stored already; its rows would be there twice")
    ranks = records_of(Rank, pq.read_table(folder / "ranks.parquet"))
    injections = records_of(Injected, pq.read_table(folder / "injections.parquet"))
    parts = _parts(paths, identity)
    published = store.lake.publish(store.lake.stage(parts))
    with store.catalog.write() as session:
        if session.has_batch(identity):
            return 0
        for run in runs:
            session.runs.merge(run)
        for rank in ranks:
            session.ranks.merge(rank)
        for injected in injections:
            session.injections.put(injected)
        session.lake_files.add(published.files)
        session.add_batch(identity, ORIGIN, row_count=sum(map(len, parts.values())), skipped=0)
    return len(runs)


def _parts(paths: Sequence[Path], identity: str) -> dict[str, pa.Table]:
    sets = [path for path in paths if path.stem not in CATALOG]
    return {f"lab-{identity[:24]}-{path.stem}": whole(pq.read_table(path)) for path in sets}


def table_of(kind: type[Record], records: Iterable[Record]) -> pa.Table:
    """The catalog's records as a table; maps and lists are JSON."""
    rows = [asdict(record) for record in records]
    columns = {field.name: [_flat(field.name, row[field.name]) for row in rows] for field in fields(kind)}
    return pa.table({name: values for name, values in columns.items() if any(value is not None for value in values)})


def records_of(kind: type[Record], table: pa.Table) -> list[Record]:
    """The records of such a table."""
    return [kind(**{name: _deep(name, value) for name, value in row.items()}) for row in table.to_pylist()]


def thin(table: pa.Table) -> pa.Table:
    """A metric set's rows without columns that hold nothing; the set's definition stays whole."""
    empty = [name for name in table.column_names if table[name].null_count == len(table)]
    return table.drop_columns(empty)


def whole(table: pa.Table) -> pa.Table:
    """A metric set's rows with all of its columns again."""
    schema = arrow_schema(set_of(table.schema))
    there = set(table.column_names)
    columns = [
        table[field.name].cast(field.type) if field.name in there else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _flat(name: str, value: Any) -> Any:
    return json.dumps(value) if name in JSON_FIELDS else value


def _deep(name: str, value: Any) -> Any:
    if name == "state":
        return RunState(value)
    if name not in JSON_FIELDS:
        return value
    decoded = json.loads(value)
    if name == "facts":
        return Facts.of(decoded)
    return tuple(decoded) if isinstance(decoded, list) else decoded


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256(ORIGIN.encode())
    for path in paths:
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
