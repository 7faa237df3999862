"""Runs of MLflow's file store. Recorded: mlflow-skinny 3.17.2 with MLFLOW_ALLOW_FILE_STORE."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.run import Run, RunState
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.trackers.mlflow_run import MlflowReader

RUNS = sorted((RECORDINGS / "mlflow").iterdir(), key=lambda path: (path / "params/layers").exists())
FAILED, FINISHED = RUNS
Row = tuple[int, str, float | None]


def read(path: Path) -> tuple[list[Row], list[Run], Report]:
    report = Report(str(path), "mlflow")
    records = list(MlflowReader().read(path, report, Context("lab", workload="toy")))
    rows = [row for record in records if isinstance(record, pa.Table) for row in record.to_pylist()]
    runs = [record for record in records if isinstance(record, Run)]
    return [(row["step"], row["name"], row["value"]) for row in rows], runs, report


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A copy of the finished run, in an experiment of its own."""
    (tmp_path / "meta.yaml").write_text("experiment_id: '1'\nname: nanogpt\nlifecycle_stage: active\n")
    return shutil.copytree(FINISHED, tmp_path / FINISHED.name)


def test_a_finished_run_with_its_metrics_parameters_and_tags(run: Path) -> None:
    rows, [imported], report = read(run)
    assert rows == [
        (0, "eval/accuracy", 0.5),
        (1, "eval/accuracy", 0.6),
        (2, "eval/accuracy", 0.7),
        (0, "loss", 2.0),
        (1, "loss", 1.0),
        (2, "loss", 0.6666666666666666),
        (3, "loss", None),
    ]
    assert (imported.workload, imported.state) == ("nanogpt", RunState.COMPLETED)
    assert imported.configuration == {"lr": 0.1, "layers": 12, "note": "two\nlines", "amp": True}
    assert imported.tags == {"imported_from": "mlflow", "imported_id": run.name, "name": "blue-7", "team": "infra"}
    assert 0 < (imported.seconds or 0) < 10
    assert (report.read, report.skipped, report.notes) == (8, 0, [])


def test_a_failed_run_whose_experiment_is_not_there_has_the_workload_that_it_is_given() -> None:
    rows, [imported], _ = read(FAILED)
    assert rows == [(0, "loss", 9.0)]
    assert (imported.workload, imported.state) == ("toy", RunState.FAILED)


def test_a_run_that_still_goes_on_is_running(run: Path) -> None:
    meta = (run / "meta.yaml").read_text().replace("status: 3", "status: 1")
    (run / "meta.yaml").write_text("".join(line for line in meta.splitlines(True) if "end_time" not in line))
    _, [imported], _ = read(run)
    assert (imported.state, imported.ended_ns) == (RunState.RUNNING, None)


def test_a_deleted_run_is_left_out(run: Path) -> None:
    meta = run / "meta.yaml"
    meta.write_text(meta.read_text().replace("lifecycle_stage: active", "lifecycle_stage: deleted"))
    assert read(run)[:2] == ([], [])
    assert read(run)[2].notes == ["was deleted in MLflow: left out"]


def test_lines_that_are_no_values_are_skipped_and_lines_without_a_step_are_at_0(run: Path) -> None:
    lines = "1750000000000 0.5\n1750000000000 0,5 1\nnow 1 2\n1750000000000 1 2 3 4 5\n1750000000000 inf 1\n17 1 1\n"
    (run / "metrics/loss").write_text(lines + "1750000000000 0.25 9")
    rows, _, report = read(run)
    assert [row for row in rows if row[1] == "loss"] == [(0, "loss", 0.5), (1, "loss", None)]
    assert [skipped.line for skipped in report.quoted] == [2, 3, 4, 6, 7]
    assert report.quoted[0].reason == "expected time, value and step: could not convert string to float: '0,5'"


def test_links_lead_nowhere(run: Path) -> None:
    (run / "params/secret").symlink_to("/etc/hostname")
    (run / "metrics/secret").symlink_to("/etc/hostname")
    _, [imported], report = read(run)
    assert "secret" not in imported.configuration
    assert [(skipped.text, skipped.reason) for skipped in report.quoted] == [("secret", "is a link")] * 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("run_id: !!python/object/apply:os.system ['true']\n", "could not determine a constructor"),
        ("run_id: [\n", "while parsing a flow node"),
        ("a: &a {run_id: x}\nrun_id:\n  <<: *a\n", "merges"),
        ("run_id: 12\n", "run_id 12; expected a text"),
        ("- run_id: x\n", "list; expected a mapping"),
    ],
)
def test_a_meta_file_that_is_not_mlflows_is_refused(run: Path, text: str, reason: str) -> None:
    (run / "meta.yaml").write_text(text)
    with pytest.raises(MalformedError, match=reason):
        read(run)


def test_an_experiment_is_no_run() -> None:
    assert MlflowReader().recognises_folder(FINISHED)
    assert not MlflowReader().recognises_folder(FINISHED.parent)
    assert not MlflowReader().recognises_folder(FINISHED / "metrics")
