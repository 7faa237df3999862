"""Keras' bars: keras3 was recorded from a training with Keras 3.15 on TensorFlow, its output going to a file;
tensorflow2 is quoted from piaic-official/AI-Q2-learning-resources#16.
"""

from pathlib import Path

from tests.ingest.readers.logs.logged import CHANGED, SECOND, read_log, read_text
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.run import RunState
from crosswind.ingest.reader.lines import LINE_LIMIT
from crosswind.ingest.readers.logs.keras import KerasReader

RECORDED = RECORDINGS / "keras"
READER = KerasReader()
MS = 1_000_000


def test_an_epoch_is_a_row_with_the_mean_of_the_last_bar_before_the_validation() -> None:
    log = read_log(READER, RECORDED / "keras3.txt", changed_ns=CHANGED)
    assert log.steps() == [
        (CHANGED - 2 * SECOND - 12 * MS, 7, 12 * MS),
        (CHANGED - 8 * MS, 15, 8 * MS),
    ]
    assert log.values(15) == {"accuracy": 0.5098, "loss": 0.8758, "val_accuracy": 0.4844, "val_loss": 1.0032}
    [run] = log.runs
    assert (run.state, run.started_ns, run.configuration) == (
        RunState.COMPLETED,
        CHANGED - 5 * SECOND,
        {"epochs": 2},
    )
    what = "means of each epoch as in the last bar before the validation, rounded as drawn"
    assert run.tags["durations_from"] == what


def test_bars_that_tell_a_steps_time_only_at_the_end_have_the_validation_in_it() -> None:
    log = read_log(READER, RECORDED / "tensorflow2.txt")
    assert [(step, duration) for _, step, duration in log.steps()] == [
        (4450, 805_000),
        (8901, 764_000),
        (13352, 753_000),
    ]
    assert log.runs[0].state is RunState.LOST  # 97 epochs are missing
    assert log.runs[0].tags["durations_from"] == "means of each epoch and its validation, rounded as drawn"
    assert log.report.notes[-1].startswith("bars of Keras before 2.4 call samples steps")


def test_a_bar_without_a_time_of_a_step_may_count_samples_and_is_skipped(tmp_path: Path) -> None:
    text = "Epoch 1/2\n50000/50000 [==============================] - 678s - loss: 1.7646 - acc: 0.3460\n"
    [skipped] = read_text(READER, tmp_path, text).report.quoted
    assert (skipped.line, skipped.reason) == (2, "no time of a step, such as 30ms/step: the bar may count samples")


def test_quiet_lines_are_bars_too(tmp_path: Path) -> None:
    text = "Epoch 1/1\n938/938 - 3s - 3ms/step - accuracy: 0.9 - loss: 1.5000e-04\n"
    log = read_text(READER, tmp_path, text)
    assert log.steps() == [(CHANGED - 3 * MS, 937, 3 * MS)]
    assert log.values(937) == {"accuracy": 0.9, "loss": 1.5e-4}


def test_an_epoch_that_is_redrawn_for_megabytes_is_one_line_all_the_same(tmp_path: Path) -> None:
    bar = " 9/10 [========>.....] - ETA: 1s - loss: 0.5"
    redrawn = ("\b" * len(bar) + "\r" + bar) * (2 * LINE_LIMIT // len(bar))
    text = f"Epoch 1/1\n{redrawn}\r10/10 [==============] - 9s 900ms/step - loss: 0.4\nEpoch 2/1\n"
    log = read_text(READER, tmp_path, text)
    assert (log.values(9), log.report.skipped) == ({"loss": 0.4}, 0)


def test_a_line_of_ten_million_characters_is_skipped_and_the_rest_is_read(tmp_path: Path) -> None:
    text = f"{'x' * 10_000_000}\nEpoch 1/1\n10/10 [=====] - 9s 900ms/step - loss: 0.4\n"
    log = read_text(READER, tmp_path, text)
    assert [(skipped.line, skipped.reason) for skipped in log.report.quoted] == [(1, f"longer than {LINE_LIMIT} bytes")]
    assert [step for _, step, _ in log.steps()] == [9]


def test_a_bar_that_is_still_drawn_is_not_believed(tmp_path: Path) -> None:
    log = read_text(READER, tmp_path, "Epoch 1/1\n10/10 [=====] - 9s 900ms/step - loss: 0.4")
    assert log.runs == []
    assert log.report.quoted[0].reason == "has no line end: it may be cut short, or still written"


def test_a_second_training_in_the_file_is_a_run_of_its_own(tmp_path: Path) -> None:
    epoch = "Epoch 1/1\n10/10 [=====] - 9s 900ms/step - loss: 0.4\n"
    log = read_text(READER, tmp_path, epoch + epoch)
    assert len({run.run_id for run in log.runs}) == 2
    assert log.steps() == [(CHANGED - 9900 * MS, 9, 900 * MS), (CHANGED - 900 * MS, 9, 900 * MS)]


def test_bars_without_an_epoch_are_not_recognised(tmp_path: Path) -> None:
    assert not READER.recognises(tmp_path / "log", b"10/10 [=====] - 9s 900ms/step\n")
