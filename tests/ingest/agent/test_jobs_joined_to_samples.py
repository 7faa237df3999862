"""From a node's processes by agent, spool and store to the rows of a job: nothing on the way is pretended but Slurm."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from crosswind.data.store.coverage import coverages
from crosswind.data.store.join import rows_of_job
from crosswind.data.store.store import Store
from crosswind.ingest.agent.agent import run_agent
from crosswind.ingest.agent.loop import LOOK_SECONDS
from crosswind.ingest.agent.settings import AgentSettings
from crosswind.ingest.load.load import load_spool

INTERVAL_SECONDS = 0.1
LOOKED_SECONDS = LOOK_SECONDS + 0.5  # within this time the agent has looked at jobs and ranks
TASK = {"SLURM_JOB_ID": "987003", "SLURM_STEP_ID": "0", "SLURMD_NODENAME": "n1", "SLURM_CLUSTER_NAME": "lab"}
PROGRAM = [sys.executable, "-c", "input()"]


@dataclass(frozen=True)
class Recorded:
    """A store, the pids of a job's ranks by number, and when the job was there."""

    store: Store
    pids: dict[int, int]
    started_ns: int
    ended_ns: int


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """An agent that watched two ranks of one job and one of another, and samples from before and after."""
    home = tmp_path_factory.mktemp("node")
    (home / "job.d").mkdir()
    settings = AgentSettings(home / "spool", INTERVAL_SECONDS, job_directory=home / "job.d", node="n1.lab")
    stop = threading.Event()
    agent = threading.Thread(target=run_agent, args=(settings, stop))
    agent.start()
    try:
        pids, started_ns, ended_ns = run_jobs(home / "job.d")
    finally:
        stop.set()
        agent.join()
    with Store.open(home / "store") as store:
        assert load_spool(store, settings.spool).problems == []
        yield Recorded(store, pids, started_ns, ended_ns)


def run_jobs(directory: Path) -> tuple[dict[int, int], int, int]:
    """Runs two ranks of one job, announced by a file, and one of another; gives the pids by rank, start and end."""
    time.sleep(0.5)
    started_ns = time.time_ns()
    tell(directory, "987003", started_ns=started_ns)
    mine = {rank: start(TASK | {"SLURM_PROCID": str(rank)}) for rank in range(2)}
    time.sleep(0.5)
    other = start(TASK | {"SLURM_JOB_ID": "987004", "SLURM_PROCID": "0"})
    time.sleep(LOOKED_SECONDS + 1)
    for process in (*mine.values(), other):
        process.communicate(b"\n")
    ended_ns = time.time_ns()
    tell(directory, "987003", started_ns=started_ns, ended_ns=ended_ns)
    time.sleep(LOOKED_SECONDS)
    return {rank: process.pid for rank, process in mine.items()}, started_ns, ended_ns


def start(environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(PROGRAM, env=os.environ | environment, stdin=subprocess.PIPE)


def tell(directory: Path, job_id: str, **times: int) -> None:
    draft = directory / f".{job_id}"
    draft.write_text(json.dumps({"job_id": job_id, "node": "n1", "system": "lab", "uid": os.geteuid(), **times}))
    draft.rename(directory / f"{job_id}.json")


def test_the_jobs_ranks_are_placed(recorded: Recorded) -> None:
    with recorded.store.catalog.read() as session:
        placements = session.places.placements_of_job("987003")
    assert [(placement.rank, placement.pid, placement.sampled_as) for placement in placements] == [
        (rank, pid, "n1.lab") for rank, pid in recorded.pids.items()
    ]


def test_process_rows_are_those_of_its_ranks_alone(recorded: Recorded) -> None:
    frame = rows_of_job(recorded.store, "process", "987003")
    assert set(frame["device"]) == {str(pid) for pid in recorded.pids.values()}
    assert frame.groupby("device").size().min() >= 3  # of 10 sweeps at least; a busy machine may miss some
    assert not frame.duplicated(["device", "ts_ns"]).any()


def test_node_rows_lie_within_the_job_and_tell_who_else_was_there(recorded: Recorded) -> None:
    frame = rows_of_job(recorded.store, "cpu", "987003")
    assert frame["ts_ns"].between(recorded.started_ns, recorded.ended_ns, inclusive="left").all()
    assert set(frame["shared_with"]) == {0, 1}  # the other job came half a second later
    with recorded.store.lake.connect() as connection:
        times = {row[0] for row in connection.execute("select distinct ts_ns from cpu").fetchall()}
    assert min(times) < recorded.started_ns
    assert max(times) > recorded.ended_ns
    within = {time for time in times if recorded.started_ns <= time < recorded.ended_ns}
    assert set(frame["ts_ns"]) == within


def test_the_job_was_sampled_all_the_while(recorded: Recorded) -> None:
    with recorded.store.catalog.read() as session:
        allocations = session.places.allocations("987003")
    assert [(allocation.started_ns, allocation.ended_ns) for allocation in allocations] == [
        (recorded.started_ns, recorded.ended_ns)
    ]
    [coverage] = coverages(recorded.store, allocations)
    assert coverage is not None
    assert coverage > 0.8


def test_the_jobs_seen_at_each_sweep_stand_in_the_set_occupancy(recorded: Recorded) -> None:
    seen = rows_of_job(recorded.store, "occupancy", "987003")["job_ids"].iloc[-1]
    assert {"987003", "987004"} <= set(seen.split(","))


def test_no_sample_carries_a_job_but_that_of_the_set_occupancy(recorded: Recorded) -> None:
    lake = recorded.store.lake
    assert {name for name in lake.sets() if any("job" in column for column in lake.columns(name))} == {"occupancy"}
