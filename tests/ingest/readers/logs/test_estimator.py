"""Logs of TensorFlow's Estimator: train_and_evaluate is quoted from tensorflow/tensorflow#43014, slim from
tensorflow/models#2980; lines with a time are in the form seen in google-research/bert#1258.
"""

from datetime import UTC, datetime
from pathlib import Path

from tests.ingest.readers.logs.logged import CHANGED, SECOND, read_text
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.run import RunState
from crosswind.ingest.readers.logs.estimator import EstimatorReader

RECORDED = RECORDINGS / "estimator"
READER = EstimatorReader()
MS = 1_000_000


def timed(time: str, file: str, text: str) -> str:
    return f"INFO:tensorflow:{text}\nI0826 {time} 140375389116288 {file}] {text}\n"


def test_the_time_of_a_line_is_shared_by_the_steps_since_the_one_before(tmp_path: Path) -> None:
    log = read_text(READER, tmp_path, (RECORDED / "train_and_evaluate.txt").read_text())
    assert log.steps() == [(CHANGED - 1_243_940_000, 100, 1_243_940_000)]
    assert log.values(0) == {"loss": 96.96749, "steps_per_second": 0.803899}
    assert log.values(100) == {"loss": 4.264659, "steps_per_second": 0.682575}
    [run] = log.runs
    assert (run.state, run.started_ns, run.ended_ns) == (RunState.LOST, CHANGED - 124_394 * MS, CHANGED)


def test_a_line_of_slim_has_the_time_of_its_step_alone_and_may_come_twice(tmp_path: Path) -> None:
    log = read_text(READER, tmp_path, (RECORDED / "slim.txt").read_text())
    assert log.steps() == [
        (CHANGED - (57_126 + 17_053) * MS, 0, 57_126 * MS),
        (CHANGED - 17_053 * MS, 1, 17_053 * MS),
    ]
    assert log.report.skipped == 0


def test_lines_with_a_time_count_and_those_without_are_passed_over(tmp_path: Path) -> None:
    hooks = "basic_session_run_hooks.py:262"
    text = (
        timed("00:45:28.850609", "session_manager.py:500", "Running local_init_op.")
        + timed("00:45:49.000000", hooks, "loss = 9.5, step = 0")
        + timed("00:46:09.000000", hooks, "loss = 8.5, step = 10 (20.000 sec)")
        + timed("00:46:10.000000", "estimator.py:371", "Loss for final step: 8.5.")
    )
    log = read_text(READER, tmp_path, text)
    end = int(datetime(2026, 8, 26, 0, 46, 9, tzinfo=UTC).timestamp()) * SECOND
    assert log.steps() == [(end - 2 * SECOND, 10, 2 * SECOND)]
    [run] = log.runs
    assert (run.state, run.started_ns, run.ended_ns) == (RunState.COMPLETED, end - 40_149_391_000, end + SECOND)
    assert run.tags["year_from"] == "the file's modification time: the log names none"
    assert "time_from" not in run.tags


def test_an_evaluation_is_of_the_newest_step(tmp_path: Path) -> None:
    text = "INFO:tensorflow:loss = 9.5, step = 5\n"
    text += "INFO:tensorflow:Saving dict for global step 5: accuracy = 0.25, global_step = 5, loss = 1.5\n"
    assert read_text(READER, tmp_path, text).values(5) == {"loss": 9.5, "eval_accuracy": 0.25, "eval_loss": 1.5}


def test_a_log_of_rates_alone_has_no_steps(tmp_path: Path) -> None:
    log = read_text(READER, tmp_path, "INFO:tensorflow:global_step/sec: 1.73561\n")
    assert (log.runs, log.report.notes) == ([], ["no line has a step"])
