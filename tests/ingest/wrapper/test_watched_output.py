import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.ingest.descriptors import open_files

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.metric import Scalar
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import load_spool
from crosswind.ingest.spool.spool import RowsFrame, read_frames, sealed_segments
from crosswind.ingest.wrapper.wrapper import Launch, launch

CROSSWIND = (sys.executable, "-m", "crosswind.cli.main")
CATASTROPHE = "(?P<x>(a+)+)$"


def words(spool: Path, pattern: str, *command: str) -> tuple[list[str], Mapping[str, str]]:
    options = ("--no-ingest", "--no-agent", "--step-lines", pattern)
    return [*CROSSWIND, "run", *options, "--", *command], os.environ | {"CROSSWIND_SPOOL": str(spool)}


def watched(spool: Path, pattern: str, *command: str, **others: object) -> "subprocess.CompletedProcess[bytes]":
    line, environment = words(spool, pattern, *command)
    return subprocess.run(line, env=environment, capture_output=True, check=False, **others)  # type: ignore[call-overload, no-any-return]


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-uc", code)


def rows(spool: Path, name: str, columns: Sequence[str]) -> list[tuple[Scalar, ...]]:
    frames = [frame for path in sealed_segments(spool) for frame in read_frames(path)]
    blocks = [frame.columns for frame in frames if isinstance(frame, RowsFrame) and frame.metric_set.name == name]
    return [row for block in blocks for row in zip(*(block[column] for column in columns), strict=True)]


TRAINS = """
import time
for step in range(1, 4):
    print(f" iteration {step:8d}/{3:8d} | elapsed time per iteration (ms): {step}.5 | lm loss: {step:.6E} |")
    time.sleep(0.01)
"""


def test_lines_become_steps_from_0_and_values_of_the_run_in_the_store(tmp_path: Path) -> None:
    wanted = Launch(python(TRAINS), tmp_path / "spool", agent_seconds=None, log=tmp_path / "log", step_lines="megatron")
    run_id = launch(wanted).run_id
    keys = ("run_id", "rank", "step")
    steps = rows(tmp_path / "spool", "step", (*keys, "duration_seconds"))
    assert steps == [(run_id, 0, step, (step + 1) * 1_000_000 + 500_000) for step in (0, 1, 2)]
    values = rows(tmp_path / "spool", "progress", (*keys, "name", "value"))
    assert values == [(run_id, 0, step, "loss", float(step + 1)) for step in (0, 1, 2)]
    with Store.open(tmp_path / "home") as store:
        assert load_spool(store, tmp_path / "spool").problems == []
        stored = store.lake.frame("select step, duration_seconds, compute_seconds from step order by step")
    assert stored["duration_seconds"].tolist() == [0.0015, 0.0025, 0.0035]
    assert stored["compute_seconds"].isna().all()  # nobody reported it


@pytest.mark.thorough
def test_of_a_bar_that_is_drawn_many_times_a_step_the_last_values_hold(tmp_path: Path) -> None:
    drawn = "(0, 9), (1, 9), (1, 8), (2, 8), (2, 7)"
    bar = (
        f"for n, loss in {drawn}: print(f'Epoch 0: 0%| | {{n}}/5 [00:00<, loss={{loss}}]', end='\\r'); time.sleep(0.3)"
    )
    watched(tmp_path, "lightning", *python(f"import time\n{bar}"))
    assert rows(tmp_path, "progress", ("step", "name", "value")) == [
        (0, "loss", 8.0),
        (1, "loss", 7.0),
    ]


def test_without_durations_the_time_between_lines_counts(tmp_path: Path) -> None:
    code = "import time\nfor step in range(4): print('step', step); time.sleep(0.2)"
    watched(tmp_path, r"step (?P<step>\d+)", *python(code))
    timed = rows(tmp_path, "step", ("step", "duration_seconds"))
    assert [step for step, _ in timed] == [1, 2, 3]
    assert all(isinstance(ns, int) and 150_000_000 < ns < 2_000_000_000 for _, ns in timed)  # a busy machine is late


def test_a_rank_that_reports_its_steps_itself_has_them_once_with_the_values_of_its_lines(tmp_path: Path) -> None:
    code = f"import crosswind\nwith crosswind.run() as run:\n    for _ in run.steps('abc'): pass\n{TRAINS}"
    watched(tmp_path, "megatron", *python(code))
    assert [step for (step,) in rows(tmp_path, "step", ("step",))] == [0, 1, 2]
    assert [step for (step,) in rows(tmp_path, "progress", ("step",))] == [0, 1, 2]


@pytest.mark.parametrize("content", [bytes(range(256)) * 8000, b"x" * 3_000_000, b"\n" * 100_000, b""])
def test_output_passes_byte_for_byte(tmp_path: Path, content: bytes) -> None:
    done = watched(tmp_path, "tqdm", "sh", "-c", "cat; echo trouble >&2; exit 5", input=content)
    assert (done.returncode, done.stdout) == (5, content)
    assert done.stderr.startswith(b"trouble\ncrosswind: run ")


def test_output_and_errors_that_go_to_one_place_stay_in_order(tmp_path: Path) -> None:
    line, environment = words(tmp_path, "tqdm", "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo $i; echo e$i >&2; done")
    done = subprocess.run(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True)
    assert done.stdout.split()[:16] == [word for i in range(1, 9) for word in (b"%d" % i, b"e%d" % i)]


def test_output_is_passed_on_at_once(tmp_path: Path) -> None:
    line, environment = words(tmp_path, "tqdm", "sh", "-c", "printf no-newline; sleep 30")
    with subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        begin = time.monotonic()
        assert process.stdout.read(10) == b"no-newline"
        assert time.monotonic() - begin < 20
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 128 + signal.SIGTERM


def test_a_reader_that_leaves_ends_the_program_as_it_would_without_us(tmp_path: Path) -> None:
    line, environment = words(tmp_path, "tqdm", "yes")
    with subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.read(2) == b"y\n"
        process.stdout.close()
        assert process.wait(20) == 128 + signal.SIGPIPE


def test_a_slow_reader_gets_everything_and_the_exit_code_waits_for_it(tmp_path: Path) -> None:
    size = 60_000  # it all fits into the program's pipe, but not at once into the reader's, which is full already
    line, environment = words(tmp_path, "tqdm", *python(f"import sys; sys.stdout.write('x' * {2 * size}); sys.exit(3)"))
    with subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3)
        assert len(process.stdout.read()) == 2 * size
        assert process.wait(20) == 3


def test_a_child_that_keeps_the_output_open_holds_nobody_up_and_is_still_read(tmp_path: Path) -> None:
    script = "(sleep 3; echo late) & echo now; exit 4"
    line, environment = words(tmp_path, "tqdm", "sh", "-c", script)
    with subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        begin = time.monotonic()
        assert process.wait(20) == 4
        assert time.monotonic() - begin < 3
        assert process.stdout.read() == b"now\nlate\n"


def test_a_catastrophic_pattern_holds_up_neither_output_nor_end(tmp_path: Path) -> None:
    code = f"print('a' * 60 + 'b')\nfor _ in range(30): print('{'a' * 60}b')"
    begin = time.monotonic()
    done = watched(tmp_path, CATASTROPHE, *python(code))
    assert time.monotonic() - begin < 20  # one such line would take centuries
    assert (done.returncode, done.stdout) == (0, (b"a" * 60 + b"b\n") * 31)
    assert b"no more step lines are recorded: the pattern took too long on 10" in done.stderr


def test_a_bad_pattern_is_refused_before_the_program_starts(tmp_path: Path) -> None:
    done = watched(tmp_path / "spool", "step (?P<step", "touch", str(tmp_path / "started"))
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"crosswind: --step-lines 'step (?P<step': " in done.stderr
    assert not (tmp_path / "started").exists()
    with pytest.raises(InvalidInputError, match="--step-lines"):
        launch(replace(Launch(("true",), tmp_path / "spool"), step_lines="["))


def test_a_program_that_cannot_start_leaves_nothing_behind(tmp_path: Path) -> None:
    before = open_files()
    with pytest.raises(InvalidInputError, match="cannot be started"):
        launch(Launch(("nosuch-program",), tmp_path, agent_seconds=None, step_lines="tqdm"))
    assert not open_files() - before


def test_nothing_stays_open_or_alive_after_a_run(tmp_path: Path) -> None:
    before = open_files()
    launch(Launch(("true",), tmp_path, agent_seconds=None, step_lines="tqdm"))
    assert not open_files() - before


def test_output_that_was_closed_stays_closed(tmp_path: Path) -> None:
    line, environment = words(tmp_path, "tqdm", "sh", "-c", "echo gone; echo complaint >&2")
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *line], env=environment, stderr=subprocess.PIPE, check=False
    )
    assert b"complaint" in done.stderr


TERMINAL = """
import os, sys, termios
sys.stdout.write(f"{[os.isatty(fd) for fd in (0, 1, 2)]} {os.get_terminal_size(1)} ")
sys.stdout.write("\\x1b[31mred\\x1b[0m\\r50%\\r\\n")
sys.stdout.flush()
sys.stdout.write("name? ")
sys.stdout.flush()
sys.stdout.write(sys.stdin.readline().strip() + "!")
"""


def test_a_program_in_a_terminal_has_one_with_its_size_colours_and_input(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (33, 77))
    line, environment = words(tmp_path, "tqdm", *python(TERMINAL))
    with subprocess.Popen(line, env=environment, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL) as process:
        os.close(theirs)
        os.write(ours, b"ada\n")
        assert process.wait(20) == 0
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:
            break
    os.close(ours)
    shown = shown.replace(b"ada\r\n", b"", 1)  # the echo of what was typed
    size = b"os.terminal_size(columns=77, lines=33)"
    assert shown == b"[True, True, False] " + size + b" \x1b[31mred\x1b[0m\r50%\r\r\nname? ada!"
