"""Export of the lab's runs from a store into small files: the sample data that ships with the package."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from crosswind.data.samples.lab_runs import CATALOG, COMPRESSION, table_of, thin
from crosswind.data.schema.errors import ConflictError, NotFoundError
from crosswind.data.schema.injection import Injected
from crosswind.data.schema.run import Rank, Run
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.ingest.lab.campaign import ENDED
from crosswind.ingest.lab.data_card import data_card, files_named_in

CARD_FILE = "README.md"
OF_RUNS = ("step", "collective")
OF_NODES = {  # and the devices: others are about the machine, not the run
    "process": "device = w.pid::varchar",
    "cpu": "device <> 'all'",
    "pressure": "true",
    "memory": "true",
    "disk": "not starts_with(device, 'zram')",
    "network": "device <> 'lo'",
    "protocol": "device = 'tcp'",
    "qdisc": "true",
    "cgroup": "starts_with(device, '/cwlab-')",
}
OF_MEMORY = (
    *("available_bytes", "cached_bytes", "anonymous_bytes", "dirty_bytes", "writeback_bytes"),
    *("page_faults_total", "major_page_faults_total", "paged_in_bytes_total", "paged_out_bytes_total"),
)
LEFT_OUT = ("mono_ns",)  # a third of all bytes; nobody set the clock
AROUND_NS = 300_000_000  # kept before and after a run: counters need a row before it begins
_WITHIN = """
select rows.* from rows where exists (
    select 1 from windows w where w.node = rows.node and rows.ts_ns between w.begin_ns and w.end_ns and {devices}
) order by node, device, ts_ns
"""
_OF_RUNS = "select rows.* from rows semi join runs using (run_id) order by run_id, rank, ts_ns"


def export(store: Store, folder: Path) -> dict[str, int]:
    """Write the lab's runs with their truth and their samples. Return the bytes of each file.

    Raises: NotFoundError when the store holds no such runs; ConflictError when the folder holds something that no
    earlier export wrote; UnavailableError.
    """
    earlier = tables_of_earlier(folder)
    runs = [run for run in all_runs(store) if run.tags.get("lab") and run.state in ENDED]
    if not runs:
        raise NotFoundError(f"store {store.home} holds no runs of the lab: crosswind lab run --plan samples")
    with store.catalog.read() as session:
        ranks = [rank for run in runs for rank in session.ranks.of(run.run_id)]
        injections = session.injections.of_runs([run.run_id for run in runs])
    sets = store.lake.sets()
    tables = {
        "runs": table_of(Run, [replace(run, user=None, account=None) for run in runs]),  # it may be published
        "ranks": table_of(Rank, ranks),
        "injections": table_of(Injected, injections),
        **{name: thin(_of_runs(store, name, runs)) for name in OF_RUNS if name in sets},
        **{name: thin(_of_nodes(store, name, runs, ranks)) for name in OF_NODES if name in sets},
    }
    tables = {name: table for name, table in tables.items() if len(table) or name in CATALOG}
    return _replaced(folder, earlier, tables, data_card(runs, injections, tables))


def tables_of_earlier(folder: Path) -> set[str]:
    """Return the files of an earlier export there. Raises: ConflictError when there are others."""
    if not folder.is_dir() or not any(folder.iterdir()):
        return set()
    card = folder / CARD_FILE
    files = files_named_in(card.read_text("utf-8", "replace")) if card.is_file() else set()
    if not files:
        raise ConflictError(f"{folder}: holds files but no {CARD_FILE} of an earlier export: name an empty folder")
    return files


def _replaced(folder: Path, earlier: Set[str], tables: Mapping[str, pa.Table], card: str) -> dict[str, int]:
    """Write all files, then put them in place of the earlier ones. Return the bytes of each."""
    names = [CARD_FILE, *(f"{name}.parquet" for name in tables)]
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".export-", dir=folder) as unfinished:
        for name, table in tables.items():
            _write(table, Path(unfinished, f"{name}.parquet"))
        Path(unfinished, CARD_FILE).write_text(card, "utf-8")
        for name in earlier - set(names):
            (folder / name).unlink(missing_ok=True)
        for name in names:  # the card first: by it the next export recognises our files
            Path(unfinished, name).rename(folder / name)
    return {name: (folder / name).stat().st_size for name in names}


def _of_runs(store: Store, name: str, runs: Sequence[Run]) -> pa.Table:
    """Return the set's rows of these runs."""
    ids = pd.DataFrame({"run_id": [run.run_id for run in runs]})
    return _chosen(_raw(store, name), _OF_RUNS, {"runs": ids})


def _of_nodes(store: Store, name: str, runs: Sequence[Run], ranks: Sequence[Rank]) -> pa.Table:
    """Return the set's rows of these runs' nodes while they ran."""
    windows = pd.DataFrame(_windows(runs, ranks), columns=["node", "pid", "begin_ns", "end_ns"])
    table = _chosen(_raw(store, name), _WITHIN.format(devices=OF_NODES[name]), {"windows": windows})
    rest = [column for column in table.column_names if name == "memory" and column.endswith(("_bytes", "_total"))]
    return table.drop_columns([*LEFT_OUT, *(column for column in rest if column not in OF_MEMORY)])


def _windows(runs: Iterable[Run], ranks: Iterable[Rank]) -> Iterator[tuple[str, int, int, int]]:
    """Yield node and process of each rank, from a little before its run to a little after it."""
    times = {run.run_id: (run.started_ns, run.ended_ns) for run in runs}
    for rank in ranks:
        begin_ns, end_ns = times[rank.run_id]
        if begin_ns is not None and end_ns is not None:
            yield rank.node, rank.pid, begin_ns - AROUND_NS, end_ns + AROUND_NS


def _raw(store: Store, name: str) -> pa.Table:
    return store.lake.counters(name, list(store.lake.columns(name)))


def _chosen(rows: pa.Table, sql: str, others: Mapping[str, pd.DataFrame]) -> pa.Table:
    with duckdb.connect(":memory:") as connection:
        for name, frame in {"rows": rows, **others}.items():
            connection.register(name, frame)
        chosen: pa.Table = connection.sql(sql).to_arrow_table()
    return chosen.cast(rows.schema)


def _write(table: pa.Table, path: Path) -> None:
    """Write integers as differences, texts by number: a third of the size of plain columns."""
    integers = [field.name for field in table.schema if pa.types.is_integer(field.type)]
    texts = [field.name for field in table.schema if pa.types.is_string(field.type)]
    pq.write_table(
        table,
        path,
        use_dictionary=texts,
        column_encoding=dict.fromkeys(integers, "DELTA_BINARY_PACKED"),
        write_statistics=False,
        **COMPRESSION,
    )
