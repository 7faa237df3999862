"""The store's files are their owner's alone, whatever the umask."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from crosswind.data.lake.compaction import compact
from crosswind.data.schema.job import Job
from crosswind.data.schema.metric import NODE_KEYS, Column, MetricSet
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import load_spool
from crosswind.ingest.spool.spool import SpoolWriter

HEAT = MetricSet("heat", "a sensor", (*NODE_KEYS, Column("heat_celsius", "heat")))


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("is_there", [False, True])
def test_nobody_else_reads_the_store_or_the_spool(tmp_path: Path, is_there: bool) -> None:
    home = tmp_path / "store"
    if is_there:
        home.mkdir(mode=0o755)  # as somebody made it, who may have a reason
    with Store.open(home) as store:
        store.jobs.put(Job("lab", "7", user="ann"))  # makes the key of the pseudonyms
        with SpoolWriter(home / "spool", "n1") as writer:
            writer.append_rows(HEAT, {"ts_ns": [1], "node": ["n"], "device": ["d"], "heat_celsius": [1]})
            writer.append_record("run", {"run_id": "r", "workload": "w", "system": "lab", "state": "running"})
            writer.flush()
            modes = {path: path.stat().st_mode for path in home.rglob("*")}
        load_spool(store, home / "spool")
        compact(store.lake, settle_seconds=0)
        modes |= {path: path.stat().st_mode for path in home.rglob("*")}
    assert {"catalog.sqlite", "catalog.sqlite-wal", "spool"} <= {path.name for path in modes}
    assert any(path.suffix == ".parquet" for path in modes)
    open_files = {path.name: oct(mode) for path, mode in modes.items() if stat.S_ISREG(mode) and mode & 0o077}
    tops = {path.name: oct(modes[path]) for path in modes if path.parent == home and stat.S_ISDIR(modes[path])}
    assert {name for name in open_files if "lake" not in name and not name.endswith(".json")} == set()
    assert {name for name, mode in tops.items() if int(mode, 8) & 0o077} == set()
    if not is_there:
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
