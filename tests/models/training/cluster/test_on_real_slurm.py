"""A training whose workers are jobs of a real Slurm; needs root and Debian's Slurm packages."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.models.next_run.made_up_runs import put
from tests.slurm.running import Slurm, running

from crosswind.data.store.store import Store

pytestmark = pytest.mark.thorough
OPTIONS = {
    "CROSSWIND_CLUSTER_WORKERS": "2",
    "CROSSWIND_CLUSTER_MEMORY": "1GiB",
    "CROSSWIND_SLURM_ACCOUNT": "weather",
    "CROSSWIND_SLURM_PARTITION": "test",
    "CROSSWIND_SLURM_WALLTIME": "00:05:00",
    "DASK_JOBQUEUE__SLURM__JOB_DIRECTIVES_SKIP": '["--mem"]',  # these nodes say nothing of their memory
}


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    folder = tmp_path_factory.mktemp("slurm")
    with Store.open(folder / "store") as store:
        for place in range(200):
            batch, ranks = 2 ** (place % 6), 2 ** (place % 4)
            put(store, f"r{place:03}", (10 + batch) / ranks**0.8, place=place, ranks=ranks, configuration={"b": batch})
    with running(folder / "slurm", 2) as started:
        kept = {name: text for name, text in started.environment.items() if not name.startswith("CROSSWIND_")}
        started.environment = kept | OPTIONS | {"CROSSWIND_HOME": str(folder / "store")}
        yield started


def train(slurm: Slurm, **variables: str) -> "subprocess.CompletedProcess[str]":
    words = ("models", "train", "run_seconds", "--cluster", "slurm", "--json")
    command = [str(Path(sys.executable).parent / "crosswind"), *words]
    environment = {**slurm.environment, **variables}
    return subprocess.run(
        command, env=environment, cwd=slurm.home, capture_output=True, text=True, check=False, timeout=400
    )


def test_its_jobs_are_the_workers_and_end_with_the_training(slurm: Slurm) -> None:
    done = train(slurm)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "done"
    names = slurm.ask("sacct", "--noheader", "--allocations", "--format=JobName%20", "--starttime=now-1hours").split()
    assert names == ["dask-worker", "dask-worker"]
    waiting = slurm.ask("squeue", "--noheader", "--format=%i", "--states=PENDING,RUNNING").split()
    assert waiting == []


def test_a_job_that_it_refuses_is_named_at_once(slurm: Slurm) -> None:
    done = train(slurm, CROSSWIND_SLURM_PARTITION="nowhere")
    assert done.returncode == 1
    error = json.loads(done.stdout)["error"]
    assert error.startswith("Slurm refuses a worker: ")
    assert "invalid partition specified: nowhere" in error
