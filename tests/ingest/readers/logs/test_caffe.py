"""Caffe's logs. traffic is quoted from libornovax/master_thesis_code#50; the parameters of lenet from a log printed at
blog.csdn.net/zhangzhenyuancs/article/details/52252103, below it lines in the form of src/caffe/solver.cpp of that time.
"""

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from tests.ingest.readers.logs.logged import SECOND, read_log, read_text
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.run import RunState
from crosswind.ingest.reader.reader import Context
from crosswind.ingest.readers.logs.caffe import CaffeReader

RECORDED = RECORDINGS / "caffe"
READER = CaffeReader()
MS = 1_000_000


def ns(*moment: int) -> int:
    return int(datetime(*moment, tzinfo=UTC).timestamp()) * SECOND  # type: ignore[misc, arg-type]


def said(month: int, day: int, time: str, text: str, prefix: str = "") -> str:
    return f"I{prefix}{month:02d}{day:02d} {time}.000000  9709 solver.cpp:219] {text}\n"


def test_the_seconds_of_a_line_are_shared_by_as_many_steps_as_its_rate_says(tmp_path: Path) -> None:
    text = (RECORDED / "traffic.txt").read_text()
    log = read_text(READER, tmp_path, text)
    first = ns(2026, 11, 9, 10, 34, 34) + 280_992_000
    assert log.steps()[0] == (first - 5_866_170_000, 360, 5_866_170_000)
    assert log.values(360) == {
        "loss": 0.0140731,
        "train_loss_x16": 0.00191901,
        "train_loss_x2": 0.00421752,
        "train_loss_x4": 0.00117622,
        "train_loss_x8": 0.00145093,
        "learning_rate": 7.8125e-07,
    }
    assert log.runs[0].state is RunState.LOST
    assert log.runs[0].tags["year_from"] == "the file's modification time: the log names none"


def test_the_year_is_that_of_the_header_where_there_is_one() -> None:
    [run] = read_log(READER, RECORDED / "lenet.txt").runs
    assert run.started_ns == ns(2016, 2, 23, 14, 55, 42) + 871_371_000
    assert run.ended_ns == ns(2016, 2, 23, 14, 56, 0) + 400_000_000
    assert (run.state, "year_from" in run.tags) == (RunState.COMPLETED, False)
    assert run.configuration["base_lr"] == 0.01
    assert run.configuration["net"] == "examples/mnist/lenet_train_test.prototxt"


def test_steps_of_old_logs_last_what_passes_between_lines() -> None:
    log = read_log(READER, RECORDED / "lenet.txt")
    assert [(step, duration) for _, step, duration in log.steps()] == [(100, 100 * MS)]
    assert log.values(100) == {"loss": 0.220931, "train_loss": 0.220931, "learning_rate": 0.00992565}


def test_a_prefix_with_a_year_needs_no_other(tmp_path: Path) -> None:
    log = read_text(READER, tmp_path, said(11, 9, "10:34:34", "Iteration 0, loss = 1", prefix="2019"))
    assert (log.runs[0].ended_ns, "year_from" in log.runs[0].tags) == (ns(2019, 11, 9, 10, 34, 34), False)


def test_a_log_that_spans_the_new_year_goes_on_in_the_next(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    lines = ((12, 31, "23:59:50", 0), (1, 1, "00:00:00", 10))
    path.write_text("".join(said(m, d, time, f"Iteration {step}, loss = 1") for m, d, time, step in lines))
    log = read_log(READER, path, changed_ns=ns(2024, 1, 1, 0, 0, 0))
    assert log.steps() == [(ns(2023, 12, 31, 23, 59, 59), 10, SECOND)]


def test_the_loss_of_the_trained_net_is_no_step(tmp_path: Path) -> None:
    begun = said(1, 2, "10:00:00", "Iteration 90 (10 iter/s, 1s/10 iters), loss = 0.5")
    text = begun + said(1, 2, "10:00:01", "Iteration 100, loss = 0.25") + said(1, 2, "10:00:01", "Optimization Done.")
    log = read_text(READER, tmp_path, text)
    assert [step for _, step, _ in log.steps()] == [90]
    assert (log.values(90), log.runs[0].state) == ({"loss": 0.5, "final_loss": 0.25}, RunState.COMPLETED)


def test_outputs_of_one_name_are_distinguished_by_their_place(tmp_path: Path) -> None:
    text = said(1, 2, "10:00:00", "Iteration 0, loss = 1") + said(1, 2, "10:00:00", "Iteration 0, Testing net (#0)")
    for place, value in enumerate((0.25, 0.75)):
        text += said(1, 2, "10:00:01", f"    Test net output #{place}: accuracy = {value}")
    assert read_text(READER, tmp_path, text).values(0) == {"loss": 1, "test_accuracy": 0.25, "test_accuracy_1": 0.75}


def test_the_hour_that_comes_twice_is_reported(tmp_path: Path) -> None:
    text = said(10, 26, "02:30:00", "Iteration 0, loss = 1", prefix="2025")
    log = read_text(READER, tmp_path, text, context=Context("test", ZoneInfo("Europe/Berlin")))
    assert log.report.notes[1].startswith("1 times, 2025-10-26T02:30:00 first, come twice or never")


def test_a_day_that_never_was_is_skipped(tmp_path: Path) -> None:
    log = read_text(READER, tmp_path, said(2, 30, "10:00:00", "Iteration 0, loss = 1"))
    assert (log.runs, log.report.skipped, log.report.quoted[0].line) == ([], 1, 1)
    assert log.report.notes == ["no line has a step"]
