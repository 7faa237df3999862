import re

import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.ingest.reader.step_lines import MAX_LINE, StepCounter, StepReport, TimedStep, line_pattern, step_report
from crosswind.ingest.wrapper.line_matcher import LineSplitter

SECOND = 1_000_000_000


def parse(pattern: str, line: str) -> StepReport | None:
    match = re.compile(line_pattern(pattern).expression).search(line)
    return step_report(match) if match else None


def taken(counter: StepCounter, parsed: StepReport, ts_ns: int) -> TimedStep:
    step = counter.take(parsed, ts_ns)
    assert step is not None
    return step


@pytest.mark.parametrize(
    ("pattern", "line", "expected"),
    [
        (
            "megatron",
            " [2025-08-01 07:19:37] iteration        1/    5000 | consumed samples:          128 | elapsed time per "
            "iteration (ms): 19138.8 | throughput per GPU (TFLOP/s/GPU): 80.2 | learning rate: 6.976744E-08 | global "
            "batch size:   128 | lm loss: 1.043863E+01 | loss scale: 1.0 | grad norm: 26.203 | number of skipped "
            "iterations:   0 | number of nan iterations:   0 |",
            StepReport(0, 0, 19.1388, {"loss": 10.43863}),
        ),
        (
            "megatron",
            " iteration      199/  317892 | consumed samples: 152832 | elapsed time per iteration (ms): 14287.5 |",
            StepReport(198, 0, 14.2875, {}),
        ),
        (
            "deepspeed",
            "[2023-11-07 01:55:23,714] [INFO] [timer.py:260:stop] epoch=0/micro_step=40/global_step=10, "
            "RunningAvgSamplesPerSec=25.025771473496132, CurrSamplesPerSec=25.704280480541442, MemAllocated=4.32GB, "
            "MaxMemAllocated=38.49GB",
            StepReport(9, 0, None, {"samples_per_second": 25.704280480541442}),
        ),
        (
            "lightning",
            "Epoch 9: 100%|███████| 860/860 [00:05<00:00, 162.25it/s, v_num=1, train_loss_step=1.460, "
            "valid_loss_step=1.480, valid_acc=0.946, train_loss_epoch=1.510]",
            StepReport(859, 0, None, {"loss": 1.46}),
        ),
        (
            "lightning",
            "Epoch 0:   4%|▍         | 350/8000 [00:09<03:23, 37.56it/s, v_num=0]",
            StepReport(349, 0, None, {}),
        ),
        (
            "caffe",
            "I1109 10:34:34.280992  9709 solver.cpp:219] Iteration 360 (0.170469 iter/s, 58.6617s/10 iters), "
            "loss = 0.0140731",
            StepReport(360, 0, None, {"loss": 0.0140731}),
        ),
        (
            "caffe",
            "I0425 10:13:21.206111  9167 solver.cpp:65] Iteration 220, loss = nan",
            StepReport(220, 0, None, {"loss": None}),
        ),
        (
            "flexflow",
            "[Metrics] accuracy: 100.000000% (64 / 64) sparse_categorical_crossentropy: 2.302583",
            StepReport(None, 0, None, {"loss": 2.302583}),
        ),
        (
            "keras",
            "\x1b[1m6/8\x1b[0m \x1b[32m━━━━━━━━━━━━━━━\x1b[0m\x1b[37m━━━━━\x1b[0m \x1b[1m0s\x1b[0m 12ms/step - "
            "accuracy: 0.4948 - loss: 0.9229 - val_loss: 1.0339",
            StepReport(5, 0, None, {"loss": 0.9229}, 7),
        ),
        (
            "keras",
            "   1/4451 [..............................] - ETA: 20:05 - loss: 0.0291 - accuracy: 0.9980",
            StepReport(0, 0, None, {"loss": 0.0291}, 4450),
        ),
        ("tqdm", " 20%|██        | 20/100 [00:01<00:04, 19.50it/s]", StepReport(19, 0, None, {}, 99)),
        ("tqdm", "  0%|          | 0/100 [00:00<?, ?it/s]", StepReport(-1, 0, None, {}, 99)),
        (r"(?P<step>\d+) of (?P<total>\d+)", "7 of 9", StepReport(7, 0, None, {}, 9)),
        (
            r"\[rank (?P<rank>\d+)\] step (?P<step>\d+) took (?P<seconds>\S+) s, accuracy (?P<accuracy>\S+)",
            "[rank 3] step 7 took 0.25 s, accuracy nan",
            StepReport(7, 3, 0.25, {"accuracy": None}),
        ),
        ("loss=(?P<loss>.*)", "loss=1,234.5", StepReport(None, 0, None, {"loss": 1234.5})),
    ],
)
def test_a_line_says_its_step_duration_and_values(pattern: str, line: str, expected: StepReport) -> None:
    assert parse(pattern, line) == expected


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("megatron", " validation loss at iteration 1000 | lm loss value: 2.1E+00 | lm loss PPL: 8.2E+00 |"),
        (
            "deepspeed",
            "[2023-11-07 01:55:23,711] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=4",
        ),
        ("lightning", "Validation DataLoader 0: 100%|██████████| 133/133 [00:07<00:00, 17.44it/s]"),
        ("tqdm", "0it [00:00, ?it/s]"),
        ("step (?P<step>.*)", "step five"),
        ("step (?P<step>.*)", "step -5"),
        ("step (?P<step>.*)", "step " + "9" * 30),
        ("rank (?P<rank>.*)", "rank " + "9" * 30),
        ("(?P<done>.*) done", "-1 done"),
    ],
)
def test_a_line_of_another_kind_says_nothing(pattern: str, line: str) -> None:
    assert parse(pattern, line) is None


@pytest.mark.parametrize("text", ["-1", "nan", "1e300", "soon"])
def test_a_duration_that_is_none_is_unknown(text: str) -> None:
    assert parse("took (?P<seconds>.*)", f"took {text}") == StepReport(None, 0, None, {})


def test_the_time_between_lines_is_that_of_each_step_between_them() -> None:
    counter = StepCounter(per_epoch=False)
    lines = [(10, 0), (20, 5), (20, 6), (21, 7), (5, 8), (6, 9)]  # 20 comes twice, and then a restart goes back to 5
    steps = [taken(counter, StepReport(step, 0, None, {}), 100 * SECOND + at * SECOND) for step, at in lines]
    assert [(step.number, step.seconds) for step in steps] == [
        (10, None),
        (20, 0.5),
        (20, None),
        (21, 2.0),
        (5, None),
        (6, 1.0),
    ]


def test_numbers_that_begin_anew_every_epoch_go_on() -> None:
    counter = StepCounter(per_epoch=True)
    steps = [-1, 49, 99, 0, 1]
    timed = [counter.take(StepReport(step, 0, None, {}), SECOND * (i + 1)) for i, step in enumerate(steps)]
    assert [step and (step.number, step.seconds) for step in timed] == [
        None,
        (49, 0.02),
        (99, 0.02),
        (100, 1.0),
        (101, 1.0),
    ]


def test_the_first_step_of_an_epoch_is_timed_from_the_first_time_that_its_bar_is_drawn() -> None:
    counter = StepCounter(per_epoch=True)
    drawn = [(-1, 1), (-1, 2), (0, 4), (1, 5), (-1, 15), (-1, 16), (0, 17)]
    timed = [counter.take(StepReport(step, 0, None, {}), SECOND * at) for step, at in drawn]
    assert [(step.number, step.seconds) for step in timed if step] == [(0, 3.0), (1, 1.0), (2, 2.0)]


def test_a_bar_within_a_bar_counts_nothing_and_neither_does_an_ended_one_that_is_drawn_again() -> None:
    counter = StepCounter(per_epoch=True)
    drawn = [(0, 3), (1, 3), (0, 9), (5, 9), (9, 9), (2, 3), (3, 3), (3, 3), (9, 9), (0, 3), (1, 3)]
    bars = [StepReport(done - 1, 0, None, {}, total - 1) for done, total in drawn]
    timed = [counter.take(bar, SECOND * i) for i, bar in enumerate(bars)]
    assert [step and step.number for step in timed] == [None, 0, None, None, None, 1, 2, None, None, None, 3]


def test_ranks_are_counted_apart_and_lines_without_a_number_by_their_order() -> None:
    counter = StepCounter(per_epoch=False)
    timed = [counter.take(StepReport(None, rank, 0.5, {}), SECOND) for rank in (0, 1, 0)]
    assert timed == [
        TimedStep(SECOND, 0, 0, 0.5, {}),
        TimedStep(SECOND, 1, 0, 0.5, {}),
        TimedStep(SECOND, 0, 1, 0.5, {}),
    ]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("step (?P<step", "unterminated name at position 9"),
        ("(?P<step>[", "unterminated character set"),
        ("no groups", "named groups such as step"),
        ("(a)", "named groups such as step"),
        ("", "named groups such as step"),
        ("(?P<seconds>.)(?P<ms>.)", "seconds and ms say the same"),
        ("(?P<step>.)(?P<done>.)", "step and done say the same"),
        ("(?P<step>" + "x" * 5000 + ")", "at most 4096 characters"),
        ("a{99999999999999999999}(?P<step>)", "--step-lines"),
    ],
)
def test_a_bad_pattern_is_refused_by_name(pattern: str, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(reason)) as raised:
        line_pattern(pattern)
    assert "--step-lines" in str(raised.value)
    assert len(str(raised.value)) < 700


def test_lines_end_by_newline_or_carriage_return_whatever_the_blocks() -> None:
    splitter = LineSplitter()
    assert list(splitter.split(b"one\rtw")) == [b"one"]
    assert list(splitter.split(b"o\r\n\nthree")) == [b"two"]
    assert list(splitter.split(b"\n")) == [b"three"]


def test_of_an_endless_line_the_beginning_is_kept() -> None:
    splitter = LineSplitter()
    assert [line for _ in range(100) for line in splitter.split(b"x" * 65536)] == []
    assert list(splitter.split(b"\nnext\n")) == [b"x" * MAX_LINE, b"next"]


def test_a_line_of_which_a_part_is_missing_is_none() -> None:
    splitter = LineSplitter()
    list(splitter.split(b"step 1"))
    splitter.tear()
    assert list(splitter.split(b"7 loss 3\nstep 8\n")) == [b"step 8"]
