"""`crosswind watch`: a run in progress until its end, from the store and from a server, on a terminal and elsewhere."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.api.live.served import Served
from tests.cli.asking import asking
from tests.cli.conftest import STEPS_SO_FAR, run_of, steps_of

from crosswind.cli.watching.look import Look, Span
from crosswind.cli.watching.screen import Screen, lines, one_line
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.answers.runs import ListedRun
from crosswind.data.schema.run import RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store

NUMBER = 12  # of the run in progress
NOW_NS = 1_767_323_045_000_000_000
RUN = ListedRun("01J", "nanogpt", "lab", RunState.RUNNING, world_size=2, started_ns=NOW_NS, run_seconds=None)
LOOK = Look(
    run=RUN,
    at_ns=NOW_NS,
    newest_ns=NOW_NS,
    steps_done=941,
    total_steps=2000,
    seconds_done=70.0,
    step_seconds=0.066,
    usual=Span(0.054, 0.062, 0.071),
    remaining=Span(64.0, 71.0, 79.0),
    ends=Span(1_767_323_109.0, 1_767_323_116.0, 1_767_323_124.0),
    waits_for="waits for rank 1 in compute, 151 ms a step since step 702",
    no_forecast=None,
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A store with three runs that ended, and one in progress."""
    for name in ("CROSSWIND_SERVER", "CROSSWIND_TOKEN", "CROSSWIND_TOKEN_FILE", "CROSSWIND_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CROSSWIND_SYSTEM", "lab")
    with Store.open(tmp_path / "home") as store:
        with store.catalog.write() as session:
            for number in range(3):
                session.runs.merge(run_of("toy", number, {"batch": 8}))
            session.runs.merge(run_of("toy", NUMBER, {"batch": 8}, state=RunState.RUNNING))
        store.lake.append("steps", to_table(STEP, steps_of(f"toy-{NUMBER}", NUMBER)))
    return tmp_path / "home"


def end(home: Path, state: RunState, code: int) -> None:
    with Store.open(home) as store, store.catalog.write() as session:
        going = run_of("toy", NUMBER, {"batch": 8}, state=RunState.RUNNING)
        session.runs.merge(replace(going, state=state, ended_ns=time.time_ns(), exit_code=code))


@contextmanager
def watching(*words: str) -> Iterator["subprocess.Popen[str]"]:
    """Yield the verb in a process of its own."""
    command = [sys.executable, "-m", "crosswind.cli.main", "watch", *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as process:
        yield process
        process.kill()


@pytest.mark.parametrize(
    ("where", "state", "code", "exits"), [("store", RunState.COMPLETED, 0, 0), ("server", RunState.FAILED, 7, 1)]
)
def test_it_ends_with_the_run_and_its_code_says_how(
    home: Path, where: str, state: RunState, code: int, exits: int
) -> None:
    with ExitStack() as held:
        words = ["toy-12"]
        if where == "server":
            served = Served(held.enter_context(Store.open(home)))
            held.callback(served.stop)
            words += ["--server", served.url]
        process = held.enter_context(watching(*words))
        assert process.stdout
        first = process.stdout.readline()
        end(home, state, code)
        last = process.stdout.read().splitlines()[-1]
        assert process.wait(timeout=20) == exits
    assert f"{STEPS_SO_FAR} steps" in first or f"step {STEPS_SO_FAR} of" in first
    assert f"{state}" in last
    assert ("exit code 7" in last) is (code == 7)


def test_a_run_that_has_ended_is_shown_once(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _ = asking(capsys)("watch", "toy-01")
    assert code == 0
    assert len(said.splitlines()) == 1
    code, said, _ = asking(capsys)("watch", "toy-01", "--json")
    [look] = map(json.loads, said.splitlines())
    assert (look["run_id"], look["state"], look["remaining"]) == ("toy-01", "completed", None)


def test_a_run_that_is_not_there_is_said(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, said = asking(capsys)("watch", "nonsense")
    assert code == 2
    assert "nonsense" in said


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_of_80_columns_has_room_for_every_line() -> None:
    for look in (LOOK, replace(LOOK, remaining=None, ends=None, no_forecast="x" * 200)):
        terminal = Terminal()
        Screen(as_json=False, stream=terminal).show(look)
        drawn = terminal.getvalue().replace("\x1b[K", "").replace("\x1b[J", "").splitlines()
        assert all(len(line) < 80 for line in drawn)
    assert all(len(line) < 80 for line in lines(LOOK))


def test_a_terminal_is_drawn_over_and_what_is_no_longer_there_goes() -> None:
    terminal = Terminal()
    screen = Screen(as_json=False, stream=terminal)
    screen.show(LOOK)
    terminal.truncate(terminal.seek(0))
    screen.show(replace(LOOK, waits_for=None))
    assert terminal.getvalue().startswith("\x1b[6F")
    assert terminal.getvalue().endswith("\x1b[J")


def test_the_screen_says_how_far_how_fast_when_and_why() -> None:
    assert [line.split()[0] for line in lines(LOOK)] == ["01J", "█" * 11 + "░" * 13, "step", "left", "ends", "slow"]
    assert "as usual" in "\n".join(lines(LOOK))
    assert "slower than usual" in "\n".join(lines(replace(LOOK, step_seconds=0.1)))
    assert "03:05:16 UTC [03:05:09 .. 03:05:24]" in "\n".join(lines(LOOK))
    old = replace(LOOK, at_ns=NOW_NS + 300_000_000_000)
    assert "the newest 5 min 0 s ago" in "\n".join(lines(old))


def test_elsewhere_a_line_comes_where_something_has_changed() -> None:
    output = io.StringIO()
    screen = Screen(as_json=False, stream=output)
    for look in (LOOK, replace(LOOK, at_ns=NOW_NS + 1), replace(LOOK, steps_done=942)):
        screen.show(look)
    assert len(output.getvalue().splitlines()) == 2
    assert not screen.is_live


def test_names_from_outside_do_not_control_the_terminal() -> None:
    hostile = replace(LOOK, run=replace(RUN, workload="a\x1b[2Jb"))
    assert "\x1b" not in "".join(lines(hostile))
    assert "\x1b" not in one_line(hostile)


def test_ctrl_c_ends_it_without_a_trace(home: Path) -> None:
    with watching("toy-12") as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
        assert process.stderr.read() == ""
