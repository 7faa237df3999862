"""MLflow's tracking database. Recorded: mlflow-skinny 3.17.2; tables without a row dropped, so that it is small."""

import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.imported import imported_id
from crosswind.data.schema.run import Run, RunState
from crosswind.ingest.reader.lines import head_of
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.searches.optuna_sqlite import OptunaReader
from crosswind.ingest.readers.trackers.mlflow_sqlite import MlflowSqliteReader

RECORDED = RECORDINGS / "mlflow_sqlite/mlflow.db"
Row = tuple[int, str, float | None]


def read(path: Path) -> tuple[list[list[Row]], list[Run], Report]:
    report = Report(str(path), "mlflow_sqlite")
    records = list(MlflowSqliteReader().read(path, report, Context("lab")))
    tables = [record.to_pylist() for record in records if isinstance(record, pa.Table)]
    rows = [[(row["step"], row["name"], row["value"]) for row in table] for table in tables]
    return rows, [record for record in records if isinstance(record, Run)], report


def changed(tmp_path: Path, *statements: str) -> Path:
    path = tmp_path / "changed.db"
    path.write_bytes(RECORDED.read_bytes())
    database = sqlite3.connect(path)
    with database:
        for statement in statements:
            database.execute(statement)
    database.close()
    return path


def test_every_run_with_its_metrics_parameters_and_tags() -> None:
    [first, second], [finished, failed], report = read(RECORDED)
    assert first == [
        (0, "loss", 2.0),
        (0, "eval/accuracy", 0.5),
        (1, "loss", 1.0),
        (1, "eval/accuracy", 0.6),
        (2, "loss", 0.6666666666666666),
        (2, "eval/accuracy", 0.7),
        (3, "loss", None),  # not a number
        (4, "loss", None),  # infinite
    ]
    assert second == [(0, "loss", 9.0)]
    assert (finished.workload, finished.state) == ("nanogpt", RunState.COMPLETED)
    assert finished.run_id == imported_id("mlflow", "lab", "410bd9e1ca18479bb6a1fef09c6e01ce")
    assert finished.configuration == {"lr": 0.1, "layers": 12, "amp": True}
    assert finished.tags == {
        "imported_from": "mlflow",
        "imported_id": "410bd9e1ca18479bb6a1fef09c6e01ce",
        "name": "blue-7",
        "team": "infra",
    }
    assert (finished.started_ns, finished.ended_ns) == (1795300838916000000, 1795300838972000000)
    assert failed.state is RunState.FAILED
    assert report.notes == ["run 5f10dc336bc3470ea42f0d86c6fa110c was deleted in MLflow: left out"]
    assert (report.read, report.skipped) == (11, 0)


def test_values_that_are_none_are_skipped_and_the_others_read(tmp_path: Path) -> None:
    path = changed(
        tmp_path,
        "update metrics set timestamp = 17 where step = 1",
        "update metrics set value = 'much' where step = 2 and key = 'loss'",
    )
    [first, _], _, report = read(path)
    assert [row[:2] for row in first] == [
        (0, "loss"),
        (0, "eval/accuracy"),
        (2, "eval/accuracy"),
        (3, "loss"),
        (4, "loss"),
    ]
    assert [skipped.reason for skipped in report.quoted] == [
        "time 17000000 ns of 'loss' is not between 2001 and 2262",
        "time 17000000 ns of 'eval/accuracy' is not between 2001 and 2262",
        "'much' at 1795300838956, step 2; expected numbers",
    ]


def test_a_run_that_goes_on_and_one_whose_experiment_is_gone(tmp_path: Path) -> None:
    statement = "update runs set status = 'RUNNING', end_time = null, experiment_id = 7 where name = 'blue-7'"
    _, [run, _], _ = read(changed(tmp_path, statement))
    assert (run.workload, run.state, run.ended_ns) == ("unknown", RunState.RUNNING, None)


def test_each_reader_of_databases_knows_its_own(tmp_path: Path) -> None:
    other = RECORDED.parents[1] / "optuna/optuna.db"
    assert not MlflowSqliteReader().recognises(other, head_of(other))
    assert not OptunaReader().recognises(RECORDED, head_of(RECORDED))
    with pytest.raises(MalformedError, match="has no table experiments, latest_metrics, metrics, params, runs, tags"):
        read(other)


def test_nothing_is_written_to_the_database(tmp_path: Path) -> None:
    path = changed(tmp_path)
    before = path.read_bytes()
    path.chmod(0o444)
    read(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
