"""Lightning's CSVLogger. Recorded: Lightning 2.6.6, two epochs of a toy model."""

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.run import Run, RunState
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.trackers.lightning_csv import LightningCsvReader

RECORDED = RECORDINGS / "lightning_csv/version_0"
MOMENT_NS = 1_750_000_000_000_000_000


def read(path: Path) -> tuple[list[tuple[int, str, float | None]], list[Run], Report]:
    report = Report(str(path), "lightning_csv")
    records = list(LightningCsvReader().read(path, report, Context("lab", workload="toy")))
    rows = [row for record in records if isinstance(record, pa.Table) for row in record.to_pylist()]
    assert {row["ts_ns"] for row in rows} <= {MOMENT_NS}
    return [(r["step"], r["name"], r["value"]) for r in rows], [r for r in records if isinstance(r, Run)], report


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copied = shutil.copytree(RECORDED, tmp_path / "version_0")
    os.utime(copied / "metrics.csv", ns=(MOMENT_NS, MOMENT_NS))
    return copied


def rewrite(folder: Path, text: str) -> None:
    (folder / "metrics.csv").write_bytes(text.encode())
    os.utime(folder / "metrics.csv", ns=(MOMENT_NS, MOMENT_NS))


def test_every_cell_that_is_filled_is_a_value_at_the_files_own_time(folder: Path) -> None:
    rows, [run], report = read(folder)
    assert [row for row in rows if row[1] != "epoch"] == [
        (1, "train_loss", 0.027542350813746452),
        (3, "train_loss", 0.016319172456860542),
        (3, "val_loss", 0.004773069638758898),
        (5, "train_loss", 0.002680751495063305),
        (7, "train_loss", 0.002191283041611314),
        (7, "val_loss", 0.00048018031520769),
    ]
    assert run.configuration == {"layers": 2, "lr": 0.1, "opt": "sgd"}
    assert (run.state, run.started_ns, run.ended_ns) == (RunState.LOST, None, MOMENT_NS)
    assert run.tags == {"imported_from": "lightning_csv", "time_from": "modification time of the file"}
    assert report.notes == ["metrics.csv has no times: its own time is that of all values, and of the end"]
    assert (report.read, report.skipped) == (13, 0)


def test_reordered_columns_and_a_new_one_are_the_same_run(folder: Path) -> None:
    before = read(folder)[1][0].run_id
    rewrite(folder, "step,epoch,accuracy,train_loss\n1,0,,0.027542350813746452\n9,1,0.5,\n")
    rows, [run], _ = read(folder)
    assert (9, "accuracy", 0.5) in rows
    assert run.run_id == before


def test_bad_lines_and_cells_are_skipped_with_their_reason(folder: Path) -> None:
    rewrite(folder, 'epoch,step,loss\n0,1,"0,5"\n0,x,1\n0,2\n0,3,nan\n0,4,1e999\n0,5,0.25\n0,6,0.')
    rows, _, report = read(folder)
    assert [row for row in rows if row[1] == "loss"] == [(3, "loss", None), (4, "loss", None), (5, "loss", 0.25)]
    assert [(skipped.line, skipped.reason) for skipped in report.quoted[:3]] == [
        (2, "loss is '0,5'; expected a number"),
        (3, "step 'x' is no whole number"),
        (4, "2 cells; expected 3"),
    ]
    assert report.quoted[3].reason.startswith("the last line has no line end")


def test_hyperparameters_that_would_be_objects_cost_only_the_configuration(folder: Path) -> None:
    (folder / "hparams.yaml").write_text("lr: !!python/object:torch.Tensor {}\n")
    rows, [run], report = read(folder)
    assert len(rows) == 12
    assert run.configuration == {}
    assert "could not determine a constructor" in report.quoted[0].reason


def test_nested_hyperparameters_get_their_path_as_name(folder: Path) -> None:
    (folder / "hparams.yaml").write_text("opt: {name: adam, betas: [0.9, 0.99]}\nseed: null\nlr: .inf\n")
    _, [run], _ = read(folder)
    assert run.configuration == {"opt.name": "adam", "opt.betas": "[0.9, 0.99]", "lr": "inf"}


@pytest.mark.parametrize("text", ["epoch,loss\n0,1\n", "step,step\n1,1\n", ""])
def test_a_file_without_steps_is_refused(folder: Path, text: str) -> None:
    rewrite(folder, text)
    with pytest.raises(MalformedError, match="expected different names, one of them step"):
        read(folder)
