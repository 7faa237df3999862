"""LBANN's output: mnist is quoted from LBANN/lbann#2433, candle from LBANN/lbann#530."""

from pathlib import Path

from tests.ingest.readers.logs.logged import CHANGED, SECOND, read_text
from tests.ingest.trees import RECORDINGS

from crosswind.ingest.readers.logs.lbann import LbannReader

RECORDED = RECORDINGS / "lbann"
READER = LbannReader()


def test_an_epoch_is_a_row_with_the_mean_of_its_steps_and_the_number_of_the_last(tmp_path: Path) -> None:
    log = read_text(READER, tmp_path, (RECORDED / "mnist.txt").read_text())
    assert log.steps() == [(CHANGED - 99_460_200 - 3_008_530, 843, 3_008_530)]
    assert log.values(843) == {
        "objective_function": 2.3036,
        "accuracy": 0.111389,
        "epoch_seconds": 2.55206,
        "step_seconds_median": 0.00274318,
        "step_seconds_max": 0.194486,
        "step_seconds_min": 0.00270395,
        "step_seconds_stdev": 0.00666651,
        "validation_objective_function": 2.30216,
        "validation_accuracy": 0.113333,
        "validation_seconds": 0.0994602,
        "validation_step_seconds_mean": 0.00104114,
        "validation_step_seconds_median": 0.00103314,
        "validation_step_seconds_max": 0.001348,
        "validation_step_seconds_min": 0.00102378,
        "validation_step_seconds_stdev": 4.18474e-05,
    }
    [run] = log.runs
    assert (run.started_ns, run.ended_ns) == (CHANGED - 99_460_200 - 2_552_060_000, CHANGED)


def test_old_lines_name_the_trainer_by_the_model(tmp_path: Path) -> None:
    log = read_text(READER, tmp_path, (RECORDED / "candle.txt").read_text())
    assert log.steps() == [
        (CHANGED - 93_531_200_000 - 97_821_100, 8 * 956 - 1, 97_821_100),
        (CHANGED - 97_835_400, 9 * 956 - 1, 97_835_400),
    ]
    assert log.values(9 * 956 - 1)["r2"] == 0.89496


def test_further_trainers_are_named_and_the_first_ones_times_count(tmp_path: Path) -> None:
    epoch = "[0] Epoch : stats formated [tr/v/te/to] iter/epoch = [10/0/0/0]\n"
    lines = [
        f"model0 (instance {trainer}) training epoch 0 {what}\n"
        for what in (
            "objective function : 1.5",
            "run time : 2s",
            "mini-batch time statistics : 0.2s mean, N/A max, 0.1s min, N/A stdev",
        )
        for trainer in (0, 1)
    ]
    log = read_text(READER, tmp_path, epoch + "".join(lines))
    assert log.steps() == [(CHANGED - SECOND // 5, 9, SECOND // 5)]
    values = log.values(9)
    assert (values["objective_function"], values["objective_function_trainer1"]) == (1.5, 1.5)
    assert (values["epoch_seconds_trainer1"], values["step_seconds_mean_trainer1"]) == (2.0, 0.2)
    assert values["step_seconds_max"] is None
    assert log.runs[0].started_ns == CHANGED - 2 * SECOND


def test_the_processes_are_the_world(tmp_path: Path) -> None:
    text = "      Processes on node          : 4\n      Total number of processes  : 8\n"
    [run] = read_text(READER, tmp_path, text + (RECORDED / "mnist.txt").read_text()).runs
    assert run.world_size == 8
    assert run.configuration == {"processes_on_node": 4, "total_number_of_processes": 8}


def test_an_epoch_without_its_headline_is_skipped(tmp_path: Path) -> None:
    text = "Model 0 training epoch 3 mini-batch time statistics : 0.1s mean, 0.2s max, 0.1s min, 0.1s stdev\n"
    [skipped] = read_text(READER, tmp_path, text).report.quoted
    assert (skipped.line, skipped.reason) == (1, "no line has the number of steps of epoch 3")
