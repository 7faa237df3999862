"""Ranks that crash and are started again by torchrun: both attempts are there, each as its own run."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crosswind.data.schema.run import RunState
from crosswind.data.store.store import Store
from crosswind.ingest.load.incoming import store_incoming

PROGRAM = Path(__file__).parent / "adapters" / "programs" / "crash_once.py"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    home = tmp_path_factory.mktemp("restarted")
    wrapper = [sys.executable, "-m", "crosswind.cli.main", "run", "--no-agent", "--"]
    torchrun = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        "--max-restarts",
        "1",
    ]
    names = os.environ | {"CROSSWIND_HOME": str(home), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*wrapper, *torchrun, str(PROGRAM), str(home / "meeting")],
        env=names,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert store_incoming(home) == []
    with Store.open(home) as store:
        yield store


@pytest.mark.thorough
def test_both_attempts_are_runs_and_the_second_names_the_first(store: Store) -> None:
    with store.catalog.read() as session:
        runs = {run.run_id.partition("-")[2]: run for run in session.runs.find(limit=5)}
    assert set(runs) == {"", "restart1"}
    assert runs["restart1"].tags["part_of"] == runs[""].run_id
    assert runs["restart1"].state is RunState.COMPLETED
    assert (runs[""].state, runs[""].exit_code) == (RunState.COMPLETED, 0)  # as the launcher says: it tried again


@pytest.mark.thorough
def test_no_step_of_either_attempt_is_lost_or_mixed_up(store: Store) -> None:
    steps = store.lake.frame(
        "select run_id, rank, count(*) as n, count(distinct step) as numbers from step group by all"
    )
    counts = {(row.run_id.partition("-")[2], row.rank): (row.n, row.numbers) for row in steps.itertuples()}
    assert counts[("restart1", 0)] == counts[("restart1", 1)] == (10, 10)
    n, numbers = counts[("", 0)]
    assert n == numbers  # what rank 0 had done when its peer died
    assert 3 <= n <= 7
