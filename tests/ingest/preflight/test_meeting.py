"""Ranks that find each other, and what is said when they do not."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.conftest import free_port

from crosswind.ingest.preflight.meeting import meet
from crosswind.ingest.preflight.peers import Alone, named

ROOT = Path(__file__).parents[3]
CHECK = [sys.executable, "-m", "crosswind", "check", "--only", "loop", "--seconds", "1", "--no-record", "--wait", "1"]


def environment_of(rank: int, size: int, port: int, **more: str) -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "CROSSWIND", "OMPI"))}
    where = {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return kept | where | {"CROSSWIND_NODE": f"n{rank}", "OMP_NUM_THREADS": "1"} | more


def test_a_rank_without_a_launcher_is_alone_and_says_nothing() -> None:
    peers = meet(1.0, {"CROSSWIND_NODE": "n1"})
    assert isinstance(peers, Alone)
    assert (peers.nodes, peers.note, peers.place.world_size) == (("n1",), "", 1)


@pytest.mark.parametrize("step", [{}, {"SLURM_STEP_ID": "4294967291"}, {"SLURM_STEP_ID": ""}])
def test_a_batch_script_waits_for_nobody_and_says_how_to_measure_all(step: Mapping[str, str]) -> None:
    slurm = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURMD_NODENAME": "n1"}
    peers = meet(60.0, {**slurm, **step})
    assert isinstance(peers, Alone)
    assert "srun --ntasks-per-node=1 crosswind check" in peers.note
    assert (peers.place.world_size, peers.place.job_id) == (1, "7")
    from_nodes = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2", "SLURMD_NODENAME": "n1"}
    assert "srun" in meet(60.0, {**from_nodes, **step}).note
    assert meet(60.0, {**from_nodes, **step, "SLURM_JOB_NUM_NODES": "1"}).note == ""


def test_ranks_without_an_address_to_meet_at_stay_alone_and_say_so() -> None:
    peers = meet(60.0, {"RANK": "1", "WORLD_SIZE": "2", "CROSSWIND_NODE": "n2"})
    assert isinstance(peers, Alone)
    assert "set MASTER_ADDR and MASTER_PORT" in peers.note
    assert peers.place.rank == 0


def test_a_rank_that_does_not_come_is_named() -> None:
    environment = environment_of(0, 3, free_port())
    done = subprocess.run(CHECK, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "ranks 1, 2 of 3: not here after 1 s" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_others_say_when_it_is_the_first_that_does_not_come() -> None:
    port = free_port()
    environment = environment_of(1, 2, port)
    done = subprocess.run(CHECK, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"MASTER_ADDR 127.0.0.1, MASTER_PORT {port}: rank 0 does not answer there" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.thorough
@pytest.mark.parametrize("port", ["99999", "none", "-1", "0", "٣"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    environment = environment_of(0, 2, 1, MASTER_PORT=port)
    done = subprocess.run(CHECK, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert f"MASTER_PORT {port!r}: expected 1 to 65535" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_torch_numpy_and_mpi_a_node_is_measured_alone() -> None:
    """-S: the standard library and our own modules are all there is."""
    environment = {**environment_of(0, 2, 1), "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-S", *CHECK[1:]]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "to measure 2 ranks together needs torch or mpi4py" in done.stdout
    assert "loop" in done.stdout
    command[command.index("loop")] = "gemm,memory"
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "gemm needs torch or numpy" in done.stderr
    assert "memory needs numpy" in done.stderr


def test_many_missing_ranks_are_counted() -> None:
    assert named([3], ["a", "b", "c", "d"]) == "rank 3 (d)"
    assert named(list(range(20))) == "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 12 more"
