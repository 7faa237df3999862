"""FlexFlow's output: metrics as in flexflow/flexflow-train#1156, the other lines in the form of its Python examples."""

from pathlib import Path

from tests.ingest.readers.logs.logged import CHANGED, read_text
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.run import RunState
from crosswind.ingest.readers.logs.flexflow import FlexFlowReader

RECORDED = RECORDINGS / "flexflow"
READER = FlexFlowReader()
MS = 1_000_000
ELAPSED = "ELAPSED TIME = 0.4800s, THROUGHPUT = 400.00 samples/s\n"


def test_the_mean_step_comes_from_the_throughput_and_the_size_of_a_batch(tmp_path: Path) -> None:
    log = read_text(READER, tmp_path, (RECORDED / "alexnet.txt").read_text())
    assert log.steps() == [(CHANGED - 160 * MS, 2, 160 * MS)]
    assert log.values(1) == {"accuracy": 1.0, "sparse_categorical_crossentropy": 2.302133}
    assert log.values(2)["samples_per_second"] == 400.0
    [run] = log.runs
    assert (run.state, run.started_ns, run.ended_ns) == (RunState.COMPLETED, CHANGED - 480 * MS, CHANGED)
    assert run.configuration == {"batch_size": 64, "workers_per_node": 1, "node_count": 1, "epochs": 1}


def test_without_the_size_of_a_batch_no_step_is_timed(tmp_path: Path) -> None:
    log = read_text(READER, tmp_path, ELAPSED)
    assert (log.steps(), log.values(0)) == ([], {"samples_per_second": 400.0})
    assert log.runs[0].started_ns == CHANGED - 480 * MS


def test_a_second_training_of_the_same_program_is_a_run_of_its_own(tmp_path: Path) -> None:
    metrics = "[Metrics] accuracy: 50.000000% (32 / 64)\n"
    log = read_text(READER, tmp_path, 2 * (2 * metrics + ELAPSED))
    assert len({run.run_id for run in log.runs}) == 2
    assert [row["step"] for row in log.rows["progress"]] == [0, 1, 1, 0, 1, 1]


def test_other_programs_metrics_are_not_recognised(tmp_path: Path) -> None:
    assert not READER.recognises(tmp_path / "log", b"[Metrics] Wrote 3 samples\n")
