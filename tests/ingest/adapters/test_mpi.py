"""mpi4py in real training of two ranks under mpirun, of which one is late before its all-reduce."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from tests.ingest.adapters.trained import PROGRAMS, STEPS, rows

from crosswind.data.steps import PHASES
from crosswind.ingest.probe.adapters import mpi

LATE, DELAY_NS = 1, 100_000_000
MPIRUN = ["mpirun", "--oversubscribe", "-np", "2"]


@pytest.fixture(scope="module")
def said_and_spool(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, bool]], Path]:
    pytest.importorskip("mpi4py", reason="no mpi4py: pip install mpi4py")
    if not shutil.which("mpirun"):
        pytest.skip("no mpirun: apt-get install openmpi-bin libopenmpi-dev")
    spool = tmp_path_factory.mktemp("mpi")
    own = {"CROSSWIND_SPOOL": str(spool), "CROSSWIND_RUN_ID": "trained", "OMP_NUM_THREADS": "1"}
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = [*MPIRUN, sys.executable, str(PROGRAMS / "mpi.py")]
    done = subprocess.run(
        command, env=os.environ | own | root, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], spool


@pytest.fixture(scope="module")
def spool(said_and_spool: tuple[list[dict[str, bool]], Path]) -> Path:
    return said_and_spool[1]


@pytest.fixture(scope="module")
def collectives(spool: Path) -> pd.DataFrame:
    return rows(spool, "collective").query("step > 0").sort_values(["rank", "step", "sequence"])


def test_the_weights_are_those_of_a_training_without_the_probe(
    said_and_spool: tuple[list[dict[str, bool]], Path],
) -> None:
    assert said_and_spool[0] == [{"is_same": True}] * 2


def test_every_rank_has_every_step_and_its_phases_sum_to_it(spool: Path) -> None:
    steps = rows(spool, "step").sort_values(["rank", "step"])
    assert list(zip(steps["rank"], steps["step"], strict=True)) == [(r, s) for r in (0, 1) for s in range(STEPS)]
    parts = steps[[f"{phase}_seconds" for phase in PHASES]]
    assert (parts.sum(axis=1) == steps["duration_seconds"]).all()
    assert (parts >= 0).all(axis=None)


@pytest.mark.parametrize(("rank", "transfer"), [(0, "send"), (1, "recv")])
def test_each_call_is_there_with_its_bytes(collectives: pd.DataFrame, rank: int, transfer: str) -> None:
    own = collectives.query("rank == @rank and step == 5")
    assert own["operation"].tolist() == ["all_reduce", "broadcast", transfer, "barrier"]
    assert own["group"].tolist() == ["world", "world", "world 0 to 1", "world"]
    assert own["size_bytes"].fillna(-1).tolist() == [16 * 8, -1, -1, -1]  # pickled objects and a barrier have none


def test_requests_end_when_they_are_waited_for(collectives: pd.DataFrame) -> None:
    assert (collectives.query("operation in ('send', 'recv', 'barrier')")["duration_seconds"] > 0).all()


def test_the_late_rank_comes_last_to_the_all_reduce(collectives: pd.DataFrame) -> None:
    arrivals = collectives.query("sequence == 0").pivot_table(index="step", columns="rank", values="ts_ns")
    assert (arrivals[LATE] - arrivals[1 - LATE] > 0.5 * DELAY_NS).mean() >= 0.95


def test_its_victim_waits_and_it_computes(spool: Path) -> None:
    comm = rows(spool, "step").groupby("rank")["comm_seconds"].median()
    assert comm[1 - LATE] > 0.8 * DELAY_NS > comm[LATE]


def test_what_is_no_communicator_is_left_to_others() -> None:
    assert not mpi.matches(object())
