import os
import pty
import shutil
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.run import Run, RunState
from crosswind.ingest.agent.agent import run_agent
from crosswind.ingest.agent.settings import AgentSettings
from crosswind.ingest.kernel.node_facts import node_facts
from crosswind.ingest.probe.place import node_name
from crosswind.ingest.spool.records import run_of
from crosswind.ingest.spool.spool import RecordFrame, RowsFrame, read_frames, sealed_segments
from crosswind.ingest.wrapper.wrapper import PASSED_ON, Launch, launch

CROSSWIND = (sys.executable, "-m", "crosswind.cli.main")


def bare(spool: Path, *command: str) -> Launch:
    """A launch without an agent beside it."""
    return Launch(command, spool, agent_seconds=None)


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def runs(spool: Path) -> list[Run]:
    frames = [frame for path in sealed_segments(spool) for frame in read_frames(path)]
    values = [frame.value for frame in frames if isinstance(frame, RecordFrame) and frame.record == "run"]
    begun, *later = values
    once = [begun, *later[later[:1] == [begun] :]]  # its begin is in a sealed segment, and in the next one
    return [run_of({name: item for name, item in value.items() if item is not None}) for value in once]


def sampled_sets(spool: Path) -> set[str]:
    frames = [frame for path in sealed_segments(spool) for frame in read_frames(path)]
    return {frame.metric_set.name for frame in frames if isinstance(frame, RowsFrame)}


@pytest.mark.parametrize(
    ("script", "exit_code", "state"),
    [
        ("exit 0", 0, RunState.COMPLETED),
        ("exit 3", 3, RunState.FAILED),
        ("kill -KILL $$", 137, RunState.FAILED),
        ("kill -TERM $$", 143, RunState.STOPPED),
        ("kill -SEGV $$", 139, RunState.FAILED),
    ],
)
def test_the_exit_code_is_the_programs_as_a_shell_gives_it(
    tmp_path: Path, script: str, exit_code: int, state: RunState
) -> None:
    outcome = launch(bare(tmp_path, "sh", "-c", script))
    assert outcome.exit_code == exit_code
    assert [(run.state, run.exit_code) for run in runs(tmp_path)] == [(RunState.RUNNING, None), (state, exit_code)]


def test_the_run_is_recorded_with_what_was_started_where(tmp_path: Path) -> None:
    wanted = replace(bare(tmp_path, "sh", "-c", "sleep 0.1"), tags={"who": "me"}, workload="toy")
    outcome = launch(wanted)
    [_, ended] = runs(tmp_path)
    assert (ended.run_id, ended.workload, ended.command) == (outcome.run_id, "toy", ("sh", "-c", "sleep 0.1"))
    assert (ended.nodes, ended.tags["who"]) == ((node_name(),), "me")
    assert ended.facts == Facts.of(node_facts())
    assert outcome.seconds >= 0.1
    [started, _] = runs(tmp_path)
    assert ended.ended_ns is not None
    assert started.started_ns is not None
    assert ended.ended_ns - started.started_ns >= 100_000_000


def test_without_a_name_the_workload_is_the_programs(tmp_path: Path) -> None:
    launch(bare(tmp_path, shutil.which("true") or "true"))
    assert {run.workload for run in runs(tmp_path)} == {"true"}


def test_the_program_receives_its_run_spool_and_workload(tmp_path: Path) -> None:
    path = tmp_path / "received"
    names = ("CROSSWIND_RUN_ID", "CROSSWIND_SPOOL", "CROSSWIND_WORKLOAD")
    code = f"import os; open({str(path)!r}, 'w').write(' '.join(os.environ[name] for name in {names}))"
    outcome = launch(replace(bare(tmp_path, *python(code)), workload="toy"))
    assert path.read_text().split() == [outcome.run_id, str(tmp_path), "toy"]


def crosswind_run(
    spool: Path, *command: str | bytes, options: Sequence[str] = ("--no-ingest", "--no-agent"), **others: object
) -> "subprocess.CompletedProcess[bytes]":
    environment = os.environ | {"CROSSWIND_SPOOL": str(spool)}
    words: list[str | bytes] = [*CROSSWIND, "run", *options, "--", *command]
    return subprocess.run(words, env=environment, capture_output=True, check=False, **others)  # type: ignore[call-overload, no-any-return]


def test_output_and_input_pass_untouched(tmp_path: Path) -> None:
    content = bytes(range(256)) * 4000
    done = crosswind_run(tmp_path, "sh", "-c", "cat; echo trouble >&2; exit 5", input=content)
    assert (done.returncode, done.stdout) == (5, content)
    first, second, third = done.stderr.decode().splitlines()
    assert first == "trouble"
    assert second.startswith("crosswind: run ")
    assert third == "crosswind: failed: the program failed: exit code 5"


def test_words_that_are_no_text_reach_the_program_as_they_are(tmp_path: Path) -> None:
    done = crosswind_run(tmp_path, "printf", "%s", b"caf\xe9")
    assert (done.returncode, done.stdout) == (0, b"caf\xe9")
    assert runs(tmp_path)[0].command == ("printf", "%s", "caf\N{REPLACEMENT CHARACTER}")


ENDS_ON_SIGNAL = """
import signal, sys, time
from pathlib import Path
signal.signal(int(sys.argv[1]), lambda number, frame: sys.exit(40 + number))
Path(sys.argv[2]).touch()
time.sleep(60)
"""


def appears(path: Path, seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return path.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_are_passed_on_and_the_programs_answer_is_ours(tmp_path: Path, number: int) -> None:
    command = [*CROSSWIND, "run", "--no-ingest", "--no-agent", "--", *python(ENDS_ON_SIGNAL), str(int(number))]
    environment = os.environ | {"CROSSWIND_SPOOL": str(tmp_path)}
    with subprocess.Popen([*command, str(tmp_path / "ready")], env=environment, stderr=subprocess.DEVNULL) as process:
        assert appears(tmp_path / "ready")
        process.send_signal(number)
        assert process.wait(20) == 40 + number
    assert runs(tmp_path)[-1].exit_code == 40 + number


COUNTS_INTERRUPTS = """
import signal, sys, time
from pathlib import Path
heard = []
signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
Path(sys.argv[1]).touch()
while not heard:
    time.sleep(0.01)
time.sleep(0.5)
sys.exit(len(heard))
"""


@pytest.mark.parametrize("options", [(), ("--step-lines", "tqdm")])
def test_ctrl_c_of_a_terminal_reaches_the_program_once(tmp_path: Path, options: tuple[str, ...]) -> None:
    ours, theirs = pty.openpty()
    code = (
        "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    program = (*python(COUNTS_INTERRUPTS), str(tmp_path / "ready"))
    command = [*python(code), *CROSSWIND, "run", "--no-ingest", "--no-agent", *options, "--", *program]
    environment = os.environ | {"CROSSWIND_SPOOL": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        assert appears(tmp_path / "ready")
        os.write(ours, termios.tcgetattr(theirs)[6][termios.VINTR])
        assert process.wait(20) == 1
    os.close(ours)
    os.close(theirs)


def state_of(pid: int) -> str:
    """R, S or T, as the kernel calls what a process does."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def becomes(pid: int, states: str, seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while state_of(pid) not in states and time.monotonic() < deadline:
        time.sleep(0.01)
    return state_of(pid) in states


TELLS_ITS_PID = """
import os, sys, time
from pathlib import Path
Path(sys.argv[1] + ".draft").write_text(str(os.getpid()))
Path(sys.argv[1] + ".draft").rename(sys.argv[1])
time.sleep(60)
"""


@pytest.mark.parametrize("options", [(), ("--step-lines", "tqdm")])
def test_stop_and_continue_reach_the_program_and_stop_the_wrapper_with_it(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    ready = tmp_path / "ready"
    program = [*python(TELLS_ITS_PID), str(ready)]
    command = [*CROSSWIND, "run", "--no-ingest", "--no-agent", *options, "--", *program]
    environment = os.environ | {"CROSSWIND_SPOOL": str(tmp_path)}
    with subprocess.Popen(command, env=environment, process_group=0, stderr=subprocess.DEVNULL) as wrapper:
        assert appears(ready)
        pid = int(ready.read_text())
        wrapper.send_signal(signal.SIGTSTP)
        assert becomes(pid, "T")
        assert becomes(wrapper.pid, "T")
        wrapper.send_signal(signal.SIGCONT)
        assert becomes(pid, "S")
        assert becomes(wrapper.pid, "S")
        wrapper.send_signal(signal.SIGTERM)
        assert wrapper.wait(20) == 128 + signal.SIGTERM


def test_a_child_that_keeps_the_output_open_holds_nobody_up(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):  # the end of the output is that of the child
        crosswind_run(tmp_path, "sh", "-c", "sleep 4 & exit 4", timeout=3)
    [_, ended] = runs(tmp_path)
    assert ended.exit_code == 4


def test_what_is_typed_in_a_terminal_reaches_the_program(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [*CROSSWIND, "run", "--no-ingest", "--no-agent", "--", "sh", "-c", 'read name; test "$name" = ada']
    environment = os.environ | {"CROSSWIND_SPOOL": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stdin=theirs, stderr=subprocess.DEVNULL) as process:
        os.write(ours, b"ada\n")
        assert process.wait(20) == 0
    os.close(ours)
    os.close(theirs)


def test_what_nohup_ignores_stays_ignored_in_the_program(tmp_path: Path) -> None:
    done = subprocess.run(
        ["nohup", *CROSSWIND, "run", "--no-ingest", "--no-agent", "--", "grep", "SigIgn", "/proc/self/status"],
        env=os.environ | {"CROSSWIND_SPOOL": str(tmp_path)},
        capture_output=True,
        check=True,
    )
    ignored = int(done.stdout.split()[1], 16)
    assert ignored & 1 << (signal.SIGHUP - 1)


def test_our_own_signal_handlers_are_there_again_afterwards(tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in PASSED_ON]
    launch(bare(tmp_path, "true"))
    assert [signal.getsignal(number) for number in PASSED_ON] == before


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("nosuch-program", "No such file or directory"),
        ("/etc/passwd", "Permission denied"),
        ("/", "Permission denied"),
        ("a\0b", "embedded null byte"),
    ],
)
def test_a_program_that_cannot_start_is_named_and_its_run_is_ended(tmp_path: Path, program: str, reason: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        launch(bare(tmp_path, program))
    assert f"run: {program!r} cannot be started: " in str(raised.value)
    assert reason in str(raised.value)
    assert (runs(tmp_path)[-1].state, runs(tmp_path)[-1].exit_code) == (RunState.FAILED, 127)


def test_a_missing_program_is_exit_code_2_on_the_command_line(tmp_path: Path) -> None:
    done = crosswind_run(tmp_path, "nosuch-program")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"crosswind: run: 'nosuch-program' cannot be started" in done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"command": ()}, "expected a program after --"),
        ({"agent_seconds": 0.0}, r"interval 0.0 s: expected 0.01 to 3600.0 s"),
        ({"agent_seconds": float("nan")}, r"interval nan s"),
        ({"workload": "x" * 201}, "workload is .* expected 200 printable characters at most"),
        ({"workload": "line\nbreak"}, "workload is .* expected 200 printable characters at most"),
        ({"tags": {"note": "x" * 5000}}, r"tags\.note is"),
    ],
)
def test_what_could_not_be_recorded_is_refused_before_the_program_starts(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    wanted = replace(bare(tmp_path / "spool", "touch", str(tmp_path / "started")), **change)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=message):
        launch(wanted)
    assert not (tmp_path / "started").exists()


def test_a_spool_that_cannot_be_written_is_refused_before_the_program_starts(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnavailableError, match=r"spool .*file/spool"):
        launch(bare(tmp_path / "file" / "spool", "touch", str(tmp_path / "started")))
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("agent_seconds", [None, 0.05])
def test_a_spool_that_is_deleted_meanwhile_leaves_the_exit_code_alone(
    tmp_path: Path, agent_seconds: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    spool = tmp_path / "spool"
    wanted = Launch(("sh", "-c", f"sleep 0.2; rm -r {spool}; exit 3"), spool, agent_seconds=agent_seconds)
    assert launch(wanted).exit_code == 3
    assert "the end of this run is not recorded" in caplog.text


def test_the_node_is_sampled_next_to_the_program(tmp_path: Path) -> None:
    launch(Launch(("sleep", "0.2"), tmp_path, agent_seconds=0.05))
    assert {"cpu", "memory", "network", "collector"} <= sampled_sets(tmp_path)


def test_an_agent_that_is_there_keeps_sampling_alone(tmp_path: Path) -> None:
    stop = threading.Event()
    agent = threading.Thread(target=run_agent, args=(AgentSettings(tmp_path, 0.05, node="elsewhere"), stop))
    agent.start()
    try:
        lock = tmp_path / "agent.lock"
        assert appears(lock)
        while agent.is_alive() and not lock.read_text():  # its number stands there once it holds the lock
            time.sleep(0.01)
        assert launch(Launch(("true",), tmp_path, agent_seconds=0.05)).exit_code == 0
        assert sampled_sets(tmp_path) == set()
    finally:
        stop.set()
        agent.join()
    assert "cpu" in sampled_sets(tmp_path)


def test_a_program_may_be_run_from_any_thread(tmp_path: Path) -> None:
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(launch(bare(tmp_path, "sh", "-c", "exit 4")).exit_code))
    thread.start()
    thread.join()
    assert codes == [4]
