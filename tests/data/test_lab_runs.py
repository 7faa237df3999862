from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crosswind.data.lake.lake import to_table
from crosswind.data.samples.lab_runs import load_lab_runs, records_of, table_of, thin, whole
from crosswind.data.schema.errors import ConflictError, UnavailableError
from crosswind.data.schema.injection import Injected
from crosswind.data.schema.metric import NODE_KEYS, Column, Kind, MetricSet
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store

RUN = Run(
    "r1",
    "toy",
    "fault-lab",
    RunState.COMPLETED,
    2,
    {"batch": 8, "link": "direct", "fused": True},
    nodes=("lab-1", "lab-2"),
    started_ns=5_000,
    ended_ns=9_000,
    software={"torch": "2.13"},
    tags={"split": "train", "injected": "cpu_hog:1:2"},
)
OTHER = Run("r2", "toy", "fault-lab", RunState.FAILED)
RANKS = [Rank("r1", 0, "lab-1", 7, 5_000), Rank("r1", 1, "lab-2", 8, 5_001, ended_ns=9_000)]
FAULT = Injected("r1", "cpu_hog", 2.0, "processes", "lab-2", 1, 6_000, 8_000)
LINK = MetricSet(
    "link",
    "",
    (*NODE_KEYS, Column("sent_bytes_total", "", Kind.COUNTER, "uint64"), Column("speed", "", dtype="float64")),
)
LINK_ROWS = to_table(
    LINK,
    {"ts_ns": [1, 2], "node": ["lab-1"] * 2, "device": ["eth0"] * 2, "sent_bytes_total": [2**64 - 2, 2**64 - 1]},
)


def test_records_come_back_as_they_were() -> None:
    assert records_of(Run, table_of(Run, [RUN, OTHER])) == [RUN, OTHER]
    assert records_of(Rank, table_of(Rank, RANKS)) == RANKS
    assert records_of(Injected, table_of(Injected, [FAULT])) == [FAULT]


def test_columns_that_hold_nothing_are_left_out_and_come_back() -> None:
    assert thin(LINK_ROWS).column_names == ["ts_ns", "node", "device", "sent_bytes_total"]
    assert whole(thin(LINK_ROWS)).equals(LINK_ROWS, check_metadata=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    steps = {"ts_ns": [5_500], "run_id": ["r1"], "rank": [0], "step": [0], "duration_seconds": [2_000]}
    tables: dict[str, pa.Table] = {
        "runs": table_of(Run, [RUN, OTHER]),
        "ranks": table_of(Rank, RANKS),
        "injections": table_of(Injected, [FAULT]),
        "step": thin(to_table(STEP, steps)),
        "link": thin(LINK_ROWS),
    }
    for name, table in tables.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    return tmp_path


def test_a_folder_is_stored_once(folder: Path, tmp_path: Path) -> None:
    with Store.open(tmp_path / "home") as store:
        assert [load_lab_runs(store, folder) for _ in range(3)] == [2, 0, 0]
        assert sorted(all_runs(store), key=lambda run: run.run_id) == [RUN, OTHER]
        with store.catalog.read() as session:
            assert session.ranks.of("r1") == RANKS
            assert session.injections.of_runs(["r1"]) == [FAULT]
            assert session.ingested().rows == 3
        assert store.lake.frame("select duration_seconds from step")["duration_seconds"].tolist() == [
            pytest.approx(2e-6)
        ]
        sent = store.lake.counters("link", ["sent_bytes_total"])["sent_bytes_total"]
        assert sorted(sent.to_pylist()) == [2**64 - 2, 2**64 - 1]


def test_changed_samples_of_runs_that_are_stored_are_refused(folder: Path, tmp_path: Path) -> None:
    with Store.open(tmp_path / "home") as store:
        load_lab_runs(store, folder)
        pq.write_table(thin(LINK_ROWS.slice(0, 1)), folder / "link.parquet")
        with pytest.raises(ConflictError, match="run r1 is stored already"):
            load_lab_runs(store, folder)
        assert len(store.lake.frame("select * from link")) == 2


def test_runs_that_were_measured_into_this_very_store_are_refused(folder: Path, tmp_path: Path) -> None:
    with Store.open(tmp_path / "home") as store:
        with store.catalog.write() as session:
            session.runs.merge(OTHER)
        with pytest.raises(ConflictError, match="run r2 is stored already"):
            load_lab_runs(store, folder)
        assert store.lake.sets() == []
        assert all_runs(store) == [OTHER]


def test_a_folder_without_the_catalogs_files_is_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path / "home") as store, pytest.raises(UnavailableError, match="crosswind lab export writes"):
        load_lab_runs(store, tmp_path)
