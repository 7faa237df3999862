from pathlib import Path

import pyarrow.parquet as pq
import pytest

from crosswind.data.lake.lake import to_table
from crosswind.data.samples.lab_runs import load_lab_runs
from crosswind.data.schema.errors import ConflictError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store
from crosswind.ingest.lab.export import export

FILES = ["README.md", "injections.parquet", "ranks.parquet", "runs.parquet", "step.parquet"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """One run of one step."""
    store = Store.open(tmp_path / "home")
    put(store, "r1")
    store.lake.append("r1", to_table(STEP, {"ts_ns": [5], "run_id": ["r1"], "rank": [0], "step": [0]}))
    return store


def put(store: Store, run_id: str) -> None:
    tags = {"lab": "yes", "position": "0000"}
    with store.catalog.write() as session:
        run = Run(run_id, "toy", "fault-lab", RunState.COMPLETED, 1, started_ns=1, ended_ns=9, tags=tags, user="ada")
        session.runs.merge(run)


def test_an_export_takes_the_place_of_an_earlier_one_as_a_whole(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "samples"
    assert sorted(export(store, folder)) == FILES
    card = folder / "README.md"
    card.write_text(card.read_text() + "| `qdisc.parquet` | 1 | samples |\n")  # as one with more sets would have it
    for name in ("qdisc.parquet", "notes.txt"):
        (folder / name).write_bytes(b"earlier")
    put(store, "r2")
    assert sorted(export(store, folder)) == FILES
    assert sorted(path.name for path in folder.iterdir()) == sorted([*FILES, "notes.txt"])
    assert pq.read_table(folder / "runs.parquet")["run_id"].to_pylist() == ["r1", "r2"]
    assert "2 runs" in card.read_text()
    assert not any(b"ada" in path.read_bytes() for path in folder.iterdir()), "nobody's name is published"
    with Store.open(tmp_path / "again") as again:
        assert load_lab_runs(again, folder) == 2


@pytest.mark.parametrize("name", ["README.md", "thesis.tex", "runs.parquet"])
def test_a_folder_of_something_else_is_refused_and_stays_as_it_is(store: Store, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("# Years of work\n\n| `runs.parquet` | 1 |\n")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(
        ConflictError, match=r"holds files but no README\.md of an earlier export: name an empty folder"
    ):
        export(store, tmp_path)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / name).read_text().startswith("# Years of work")
