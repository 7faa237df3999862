import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ingest.lab.observed import alive

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.lab.hosts import companion
from crosswind.ingest.lab.hosts.companion import Companion, EndedEarlyError
from crosswind.ingest.lab.injectors.pause import pause

NOBODY: list[int] = []  # whom to pause: what is left is a process that waits
LONG_SECONDS = 600.0


@pytest.fixture
def two() -> Iterator[list[Companion]]:
    started = companion.start_all(pause, [[NOBODY, LONG_SECONDS]] * 2)
    yield started
    for pauser in started:
        pauser.kill()


def test_processes_that_are_at_work_are_ended(two: list[Companion]) -> None:
    pids = [pauser.process.pid for pauser in two]
    assert alive(pids) == pids
    companion.kill_all(two)
    assert [pauser.process.returncode for pauser in two] == [-signal.SIGKILL] * 2


def test_a_process_that_ended_before_is_reported_when_all_others_have_been_ended(two: list[Companion]) -> None:
    first, second = (pauser.process for pauser in two)
    first.send_signal(signal.SIGTERM)
    os.waitid(os.P_PID, first.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(EndedEarlyError, match=rf"1 of 2 processes ended before the request: \[{first.pid}\]"):
        companion.kill_all(two)
    assert second.returncode == -signal.SIGKILL


def test_a_program_that_cannot_start_is_an_error_and_leaves_no_other(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="pause: pause said b''"):
        companion.start_all(pause, [[NOBODY, LONG_SECONDS], ["nobody", LONG_SECONDS]])
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert not [pid for pid in children if b"injectors.pause" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_a_process_whose_lab_has_died_before_it_could_watch_it_does_not_begin() -> None:
    script = """
import os, sys
from crosswind.ingest.lab.hosts import companion
sys.argv[1:] = [str(os.getpid())]  # not its parent
companion.leash()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.fullmatch(r"process \d+ is no longer there\n", done.stderr)
