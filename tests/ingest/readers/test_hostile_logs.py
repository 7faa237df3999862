"""Lines and heads that somebody made to keep patterns busy: each takes as long as it is, not the square of that."""

import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from crosswind.ingest.reader.lines import HEAD_BYTES
from crosswind.ingest.reader.reader import Context, Reader, Report
from crosswind.ingest.readers import logs
from crosswind.ingest.readers.formats import READERS
from crosswind.ingest.readers.logs.training_log import LOOKED_AT

LINE_SECONDS = 0.1  # of CPU: fifty times what any pattern takes; one that tries every pair of places takes seconds
HEAD_SECONDS = 0.3
TURNS = 5  # a busy machine makes one turn slow, hardly five
RUNS = ("0", " ", "a", "-", ".", "_", ":", "[", "=", "\t", "a ", "1 ", "a: ", "- ", "1.", "a = ", "━")
MARKS = (
    *("iteration 1/ 2 | ", "validation loss at iteration 1 ", "[2026-01-01 00:00:00] ", "-------- arguments "),
    *(
        "] datetime: ",
        "[Rank 0] step=1, skipped=0, lr=[",
        "global_step=1, RunningAvgSamplesPerSec=",
        "[timer.py:1:stop] ",
    ),
    *("I0101 00:00:00.0 1 solver.cpp:1] ", "Iteration 1 ( iter/s, ", "Iteration 1 (1 iter/s, 1s/1 iters), "),
    *("[1] Epoch : stats formated [tr/v/te", "(instance 1) training epoch 1 ", "[Metrics] throughput: "),
    *(
        "epochs 1, ELAPSED TIME = ",
        '[{"ph": "B", ',
        '"name": "NEGOTIATE_',
        "Epoch 1/2\n1/1 ━",
        "Epoch 1/2\n",
        "1/1 [==",
    ),
    *("loss = ", "INFO:tensorflow:loss = ", ':::MLLOG {"key": "power_reading" ', ":::MLL 1560000000.250 "),
    *(
        "0: :::MLLOG {",
        '"time_ms": 1, ',
        "\n",
        "\n:",
        "a:\n",
        '{"jobs": [{',
        '"accrue_time": ',
        "JOBID|",
        "x,objective:",
    ),
    *("objective ", "# TYPE a ", 'a{b="', ";E;", ": "),
)


def is_quick(act: Callable[[], object], seconds: float) -> bool:
    return any(turn(act) < seconds for _ in range(TURNS))


def turn(act: Callable[[], object]) -> float:
    begun = time.process_time()
    act()
    return time.process_time() - begun


def patterns() -> Iterator[re.Pattern[str]]:
    for module in pkgutil.iter_modules(logs.__path__):
        for value in vars(importlib.import_module(f"{logs.__name__}.{module.name}")).values():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                yield value


def of_length(fragment: str, length: int, end: str = "") -> str:
    return (fragment * (length // len(fragment) + 1))[: length - len(end)] + end


@pytest.mark.parametrize("pattern", dict.fromkeys(patterns()), ids=lambda pattern: pattern.pattern[:40])
def test_no_pattern_takes_long_for_a_line(pattern: re.Pattern[str]) -> None:
    for fragment in RUNS:
        line = of_length(fragment, LOOKED_AT, "!")
        assert is_quick(partial(pattern.findall, line), LINE_SECONDS), fragment


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_no_reader_takes_long_to_recognise_nothing(reader: Reader) -> None:
    for fragment in (*RUNS, *MARKS):
        head = of_length(fragment, HEAD_BYTES).encode()[:HEAD_BYTES]
        look = partial(reader.recognises, Path("x.log"), head)
        assert is_quick(look, HEAD_SECONDS), fragment


@pytest.mark.parametrize("name", ["megatron", "deepspeed", "caffe", "lbann", "flexflow", "keras", "estimator"])
def test_no_log_takes_long_for_hostile_lines(name: str, tmp_path: Path) -> None:
    [reader] = [candidate for candidate in READERS if candidate.name == name]
    first = "-------- arguments --------\nInitializing solver from parameters:\nEpoch 1/2\n"
    marked = [mark.replace("\n", " ") for mark in MARKS]
    lines = [of_length(fragment, LOOKED_AT, "!") for fragment in (*RUNS, *marked)]
    lines += [(mark + of_length(run, LOOKED_AT, "!"))[:LOOKED_AT] for mark in marked for run in RUNS[:8]]
    path = tmp_path / "x.log"
    path.write_text(first + "".join(f"{line}\n" for line in lines))
    took = turn(lambda: list(reader.read(path, Report(str(path), name), Context("lab"))))
    assert took < len(lines) * LINE_SECONDS
