"""Real process trees: which of the processes that carry a rank's variables is found to be the rank."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crosswind.data.schema.occupancy import Source
from crosswind.ingest.occupancy.occupancy import Occupancy
from crosswind.ingest.spool.registration import announce

TASK = {"SLURM_JOB_ID": "987001", "SLURM_STEP_ID": "0", "SLURMD_NODENAME": "n1"}
FIRST = TASK | {"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}
PATIENCE_SECONDS = 20.0
# Every program below says `NAME PID` of its processes on its output, and lives until it is killed.
PROGRAM = "import os, time; print('program', os.getpid(), flush=True); time.sleep(60)"
FORKING = """
import os, time
print('program', os.getpid(), flush=True)
if os.fork() == 0:
    print('worker', os.getpid(), flush=True)
time.sleep(60)
"""
SPAWNING = """
import os, subprocess, sys, time
print('program', os.getpid(), flush=True)
environment = os.environ | {'RANK': '0', 'WORLD_SIZE': '1', 'LOCAL_RANK': '0'}
subprocess.Popen([sys.executable, '-c', "import os, time; print('helper', os.getpid(), flush=True); time.sleep(60)"],
                 env=environment)
time.sleep(60)
"""
LAUNCHER = """
import os, subprocess, sys, time
print('launcher', os.getpid(), flush=True)
for rank in range(2):
    environment = os.environ | {'RANK': str(rank), 'LOCAL_RANK': str(rank), 'WORLD_SIZE': '2'}
    subprocess.Popen([sys.executable, '-c', f"import os, time; print('rank{rank}', os.getpid(), flush=True); "
                      "time.sleep(60)"], env=environment)
time.sleep(60)
"""
Start = Callable[..., dict[str, int]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a program and waits until it has named these of its processes; gives their pids, `top` being its own."""
    groups: list[subprocess.Popen[str]] = []

    def run(words: list[str], environment: dict[str, str], *names: str) -> dict[str, int]:
        inherited = {"PATH": os.environ["PATH"]}
        program = subprocess.Popen(
            words, env=inherited | environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        groups.append(program)
        pids = {"top": program.pid}
        assert program.stdout
        while not pids.keys() >= set(names):
            name, pid = program.stdout.readline().split()
            pids[name] = int(pid)
        return pids

    yield run
    for program in groups:
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()


def ranks(occupancy: Occupancy) -> dict[int, int]:
    """Rank by pid, of the jobs that these tests make up."""
    return {p.pid: p.rank for p in occupancy.placements() if p.job_id == "987001" and p.rank is not None}


def look(**options: Path) -> Occupancy:
    occupancy = Occupancy("n1", **options)
    occupancy.refresh()
    return occupancy


def test_a_program_in_a_shell_is_the_rank_and_its_forked_worker_is_not(start: Start) -> None:
    pids = start(["sh", "-c", f'{sys.executable} -c "{FORKING}"; true'], FIRST, "program", "worker")
    assert ranks(look()) == {pids["program"]: 0}
    assert pids["top"] != pids["program"]


def test_a_shell_that_runs_nothing_yet_is_no_rank_and_its_program_is_found_once_it_comes(start: Start) -> None:
    wait = 'echo shell $$; read line < "$0"; '  # a named pipe: the shell waits without a child
    pipe = f"/tmp/crosswind-test-{os.getpid()}"
    os.mkfifo(pipe)
    try:
        pids = start(["sh", "-c", f'{wait} {sys.executable} -c "{PROGRAM}"; true', pipe], FIRST, "shell")
        occupancy = look()
        assert ranks(occupancy) == {}
        Path(pipe).write_text("go\n")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not ranks(occupancy) and time.monotonic() < deadline:
            occupancy.refresh()
            time.sleep(0.05)
    finally:
        Path(pipe).unlink()
    [pid] = ranks(occupancy)
    assert pid != pids["shell"]
    assert Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1] == str(pids["shell"])


def test_a_program_that_repeats_its_rank_for_a_helper_stays_the_rank(start: Start) -> None:
    pids = start([sys.executable, "-c", SPAWNING], FIRST, "program", "helper")
    assert ranks(look()) == {pids["program"]: 0}


@pytest.mark.parametrize("name", ["torchrun", "unheard_of.py"])
def test_the_workers_of_a_launcher_are_the_ranks_and_the_launcher_is_not(
    start: Start, name: str, tmp_path: Path
) -> None:
    script = tmp_path / name
    script.write_text(LAUNCHER)
    pids = start([sys.executable, str(script)], FIRST, "launcher", "rank0", "rank1")
    assert ranks(look()) == {pids["rank0"]: 0, pids["rank1"]: 1}


def test_a_launcher_alone_is_not_taken_for_a_rank_before_its_workers_come(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "torchrun"
    script.write_text("import os, time; print('launcher', os.getpid(), flush=True); time.sleep(60)")
    start([sys.executable, str(script)], FIRST, "launcher")
    assert ranks(look()) == {}


def test_of_a_pipe_the_program_that_computes_is_the_rank(start: Start) -> None:
    busy = "import os, sys; print('program', os.getpid(), file=sys.stderr, flush=True)\nwhile True: pass"
    pids = start(["sh", "-c", f'{sys.executable} -c "{busy}" 2>&1 | cat; true'], FIRST, "program")
    occupancy, deadline = look(), time.monotonic() + PATIENCE_SECONDS
    while not ranks(occupancy) and time.monotonic() < deadline:
        time.sleep(0.05)
        occupancy.refresh()
    assert ranks(occupancy) == {pids["program"]: 0}


def test_four_tasks_are_four_ranks(start: Start) -> None:
    pids = [
        start([sys.executable, "-c", PROGRAM], TASK | {"SLURM_PROCID": str(rank), "SLURM_NTASKS": "4"}, "program")
        for rank in range(4)
    ]
    assert ranks(look()) == {task["program"]: rank for rank, task in enumerate(pids)}


@pytest.mark.host
def test_a_process_that_announced_itself_is_the_rank_and_what_started_it_is_not(start: Start, tmp_path: Path) -> None:
    pids = start([sys.executable, "-c", FORKING], FIRST, "program", "worker")
    announce(tmp_path, run_id="r1", rank=3, node="n1", pid=pids["worker"])
    occupancy = look(run_directory=tmp_path)
    assert ranks(occupancy) == {pids["worker"]: 3}
    [placement] = occupancy.placements()
    assert (placement.run_id, placement.job_id, placement.source) == ("r1", "987001", Source.PROBE)


def test_the_run_of_crosswind_run_is_known_by_its_program(start: Start) -> None:
    pids = start([sys.executable, "-c", PROGRAM], {"CROSSWIND_RUN_ID": "01RUN"}, "program")
    occupancy = look()
    assert [(p.pid, p.run_id, p.rank) for p in occupancy.placements() if p.run_id == "01RUN"] == [
        (pids["program"], "01RUN", None)
    ]
