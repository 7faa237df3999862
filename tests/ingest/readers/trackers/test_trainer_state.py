"""Hugging Face's trainer_state.json. Recorded: transformers 5.23.0, two epochs of a toy model."""

import json
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import Loaded
from crosswind.ingest.load.load_file import load_file
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.trackers.trainer_state import TrainerStateReader

RECORDED = RECORDINGS / "trainer_state/trainer_state.json"
MOMENT_NS = 1_750_000_000_000_000_000


def read(path: Path) -> tuple[list[tuple[int, str, float | None]], list[Run], Report]:
    report = Report(str(path), "trainer_state")
    records = list(TrainerStateReader().read(path, report, Context("lab")))
    rows = [row for record in records if isinstance(record, pa.Table) for row in record.to_pylist()]
    return [(r["step"], r["name"], r["value"]) for r in rows], [r for r in records if isinstance(r, Run)], report


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = Path(shutil.copy(RECORDED, tmp_path))
    os.utime(path, ns=(MOMENT_NS, MOMENT_NS))
    return path


def test_what_was_logged_is_progress_and_the_run_took_its_run_time(state: Path) -> None:
    rows, [run], report = read(state)
    assert [row for row in rows if row[1] == "loss"] == [
        (2, "loss", 3.117572784423828),
        (4, "loss", 3.1142592430114746),
        (6, "loss", 2.620380401611328),
        (8, "loss", 3.609198808670044),
    ]
    assert (8, "train_samples_per_second", 268.978) in rows
    assert (run.state, run.workload, run.ended_ns) == (RunState.COMPLETED, "unknown", MOMENT_NS)
    assert run.seconds == pytest.approx(0.119)
    assert run.configuration == {"max_steps": 8, "num_train_epochs": 2, "train_batch_size": 4}
    assert run.tags["time_from"] == "modification time of the file"
    assert (report.read, report.skipped) == (33, 0)


def test_of_a_folder_of_checkpoints_the_last_state_is_one_run(state: Path) -> None:
    for step in (4, 8):
        folder = state.parent / f"checkpoint-{step}"
        folder.mkdir()
        shutil.copy(state, folder)
    assert read(state.parent / "checkpoint-8" / state.name)[2].notes == [f"{state} has all of this and more: left out"]
    state.unlink()
    assert read(state.parent / "checkpoint-4" / state.name)[0] == []
    assert len(read(state.parent / "checkpoint-8" / state.name)[0]) == 32


def test_a_state_without_a_run_time_does_not_say_how_it_ended(state: Path) -> None:
    content = json.loads(state.read_text())
    state.write_text(json.dumps(content | {"log_history": content["log_history"][:2]}))
    _, [run], _ = read(state)
    assert (run.state, run.started_ns) == (RunState.LOST, None)


def test_entries_without_a_step_and_values_that_are_no_numbers_are_no_rows(state: Path) -> None:
    content = json.loads(state.read_text())
    entries = [{"loss": 1.0}, {"step": 2, "loss": float("nan"), "note": "x", "flag": True}, 5]
    state.write_text(json.dumps(content | {"log_history": entries}))
    rows, _, report = read(state)
    assert rows == [(2, "loss", None)]
    assert [skipped.reason for skipped in report.quoted] == ["entry 1 of log_history has no step"]


@pytest.mark.parametrize("text", ["{", '{"log_history": {}}', "[" * 100_000, '{"log_history": [' + "9" * 5000 + "]}"])
def test_what_is_no_such_document_is_refused(state: Path, text: str) -> None:
    state.write_text(text)
    with pytest.raises(MalformedError, match=r"trainer_state\.json"):
        read(state)


def test_a_later_state_at_the_same_place_gives_only_what_was_logged_since(state: Path, tmp_path: Path) -> None:
    whole = json.loads(state.read_text())
    loaded = Loaded()
    with Store.open(tmp_path / "store") as store:
        for number, logged in enumerate((2, len(whole["log_history"])), 1):
            history = whole["log_history"][:logged]
            state.write_text(json.dumps(whole | {"global_step": history[-1]["step"], "log_history": history}))
            os.utime(state, ns=(MOMENT_NS + number, MOMENT_NS + number))
            load_file(store, state, TrainerStateReader(), loaded, context=Context("lab"))
        kept = store.lake.frame("select step, name, value from progress order by step, name")
    assert len(loaded.runs) == 1
    stored = [(row.step, row.name, row.value) for row in kept.itertuples(index=False)]
    assert stored == sorted(set(read(state)[0]))
