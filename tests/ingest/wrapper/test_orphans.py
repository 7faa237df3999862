"""Programs whose starter was killed with -9, which leaves it no time to do anything."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crosswind.ingest.wrapper.orphans import end, processes_of

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux")
STARTER = """\
import os, subprocess, sys, time
from crosswind.ingest.wrapper.orphans import ended_with_us
with ended_with_us(sys.argv[1], 1.0):
    program = subprocess.Popen(["bash", "-c", sys.argv[2]], env={**os.environ, "CROSSWIND_RUN_ID": sys.argv[1]})
    program.wait()
"""
DEAF = "trap '' TERM; setsid sleep 60 & sleep 60; sleep 60"  # it ignores SIGTERM, as do its children in any session


def start(run_id: str, program: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", STARTER, run_id, program], stderr=subprocess.PIPE)


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("program", ["sleep 60 & sleep 60; true", DEAF], ids=["polite", "deaf"])
def test_no_process_of_a_run_outlives_a_starter_that_was_killed(program: str) -> None:
    run_id = f"R{os.getpid()}-{len(program)}"
    with start(run_id, program) as starter:
        wait_until(lambda: len(processes_of(run_id)) >= 3)  # the shell and two it started
        starter.kill()
        wait_until(lambda: not processes_of(run_id))
        assert starter.stderr is not None
        assert f"run {run_id} was killed: the run's processes are ended" in starter.stderr.read().decode()


def test_what_a_program_leaves_behind_goes_on_where_the_starter_ends_by_itself() -> None:
    run_id = f"R{os.getpid()}-daemon"
    with start(run_id, "sleep 60 > /dev/null 2>&1 & true") as starter:
        assert starter.wait() == 0
    [daemon] = processes_of(run_id)
    os.kill(daemon, signal.SIGKILL)


def test_a_run_without_processes_is_ended_in_no_time() -> None:
    begin = time.monotonic()
    end("nobody's", 60.0)
    assert time.monotonic() - begin < 30
