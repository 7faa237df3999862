"""A laboratory for real: hosts, agents, two ranks over gloo, faults, a neighbour, and a worker that dies."""

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pytest
from tests.ingest.lab.traffic import in_a_lab

from crosswind.data.samples.lab_runs import load_lab_runs
from crosswind.data.schema.injection import Injected
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.store.features import all_runs
from crosswind.data.store.join import rows_of_run
from crosswind.data.store.store import Store
from crosswind.ingest.lab.campaign import Step, run_plan
from crosswind.ingest.lab.export import export
from crosswind.ingest.lab.folders import Folders
from crosswind.ingest.lab.plans.plan import Cohort, Plan, PlannedFault, PlannedRun

pytestmark = in_a_lab
STEPS, DELAY_MS = 60, 60.0
GRADIENT_BYTES = 90_000  # and more
COHORT = Cohort("image-classifier", 2, 4, 1.0)
SLOW = PlannedFault("slow_input", DELAY_MS, rank=1, begin=0.4)
PLAN = Plan(
    "test",
    (
        PlannedRun(0, COHORT, (), None, "train", 0, STEPS),
        PlannedRun(1, COHORT, (SLOW,), COHORT, "train", 1, STEPS),
        PlannedRun(2, COHORT, (PlannedFault("slow_rank", 200.0, rank=0),), None, "test", 2, STEPS),
    ),
)


@dataclass(frozen=True)
class Measured:
    """The records that a plan of three runs left; the worker of the last one's rank 1 was killed."""

    store: Store
    runs: list[Run]
    beside: list[Run]
    injections: list[Injected]
    ranks: list[Rank]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measured]:
    pytest.importorskip("torch")
    with Store.open(tmp_path_factory.mktemp("lab")) as store:
        assert run_plan(PLAN, store, report=kill_in_the_last) == []
        runs = all_runs(store)
        planned = sorted((run for run in runs if "position" in run.tags), key=lambda run: run.tags["position"])
        with store.catalog.read() as session:
            injections = session.injections.of_runs([run.run_id for run in runs])
            ranks = session.ranks.of(planned[0].run_id)
        yield Measured(store, planned, [run for run in runs if "neighbour_of" in run.tags], injections, ranks)


def kill_in_the_last(step: Step) -> None:
    if step.planned.number == 2:
        threading.Timer(1.5, lambda: os.kill(a_worker(), signal.SIGKILL)).start()


def a_worker() -> int:
    """A worker of this process's lab."""
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text().split():
            if b"crosswind.ingest.lab.workers.worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return int(pid)
    raise AssertionError("no worker is alive")


def test_runs_are_recorded_with_their_place_in_the_plan(measured: Measured) -> None:
    tags = [{name: run.tags.get(name) for name in ("lab", "plan", "position", "split")} for run in measured.runs]
    assert tags == [
        {"lab": "yes", "plan": "test", "position": "0000", "split": "train"},
        {"lab": "yes", "plan": "test", "position": "0001", "split": "train"},
        {"lab": "yes", "plan": "test", "position": "0002", "split": "test"},
    ]
    first = measured.runs[0]
    configuration = {"batch": 4, "bucket_mb": 1.0, "threads": 1, "link": "direct"}
    assert (first.state, first.world_size, first.configuration) == (RunState.COMPLETED, 2, configuration)
    assert [(rank.rank, rank.node) for rank in measured.ranks] == [(0, "lab-1"), (1, "lab-2")]


def test_every_rank_recorded_every_step_and_its_collectives(measured: Measured) -> None:
    counted = measured.store.lake.frame(
        "select rank, count(*) as steps, (select count(distinct c.step) from collective c "
        "where c.run_id = s.run_id and c.rank = s.rank) as with_collectives "
        "from step s where run_id = ? group by run_id, rank order by rank",
        [measured.runs[0].run_id],
    )
    assert counted.to_numpy().tolist() == [[0, STEPS, STEPS], [1, STEPS, STEPS]]


def test_the_truth_reports_what_was_done_from_when_to_when(measured: Measured) -> None:
    run = measured.runs[1]
    [slow] = [injection for injection in measured.injections if injection.kind == "slow_input"]
    assert (slow.run_id, slow.strength, slow.unit) == (run.run_id, DELAY_MS, "ms a batch")
    assert (slow.node, slow.rank) == ("lab-2", 1)
    assert run.started_ns is not None
    assert run.started_ns < slow.started_ns < slow.ended_ns
    steps = measured.store.lake.frame("select * from step where run_id = ? and rank = 1 order by step", [run.run_id])
    is_late = steps["input_seconds"] >= DELAY_MS / 1000
    within = steps["ts_ns"].between(slow.started_ns, slow.ended_ns)
    assert (is_late & within).sum() == is_late.sum() > 0.5 * STEPS
    assert not is_late[: int(0.4 * STEPS)].any()


def test_a_neighbours_job_is_a_run_of_its_own_and_part_of_the_truth(measured: Measured) -> None:
    [beside] = measured.beside
    assert (beside.tags["neighbour_of"], beside.state) == (measured.runs[1].run_id, RunState.COMPLETED)
    assert measured.runs[1].tags["neighbour"] == beside.run_id
    jobs = sorted(
        (injection for injection in measured.injections if injection.kind == "neighbour_job"),
        key=lambda injection: injection.rank,
    )
    assert [(injection.run_id, injection.node, injection.rank) for injection in jobs] == [
        (measured.runs[1].run_id, "lab-1", 0),
        (measured.runs[1].run_id, "lab-2", 1),
    ]
    begin, end = measured.runs[1].started_ns, measured.runs[1].ended_ns
    assert begin is not None
    assert end is not None
    assert all(begin <= injection.started_ns < injection.ended_ns <= end for injection in jobs)


def test_agents_saw_each_hosts_own_network_and_processes(measured: Measured) -> None:
    run_id = measured.runs[1].run_id  # long enough for some sweeps
    network = rows_of_run(measured.store, "network", run_id).query("device == 'eth0'")
    moved = network.groupby("node")["transmit_bytes_total"].agg(lambda total: total.max() - total.min())
    assert sorted(moved.index) == ["lab-1", "lab-2"]
    assert (moved > 10 * GRADIENT_BYTES).all()
    process = rows_of_run(measured.store, "process", run_id)
    assert set(zip(process["node"], process["device"], strict=True)) == {
        (rank.node, str(rank.pid)) for rank in measured.ranks
    }


def test_a_run_whose_worker_dies_has_failed_and_reports_what_was_done_until_then(measured: Measured) -> None:
    run = measured.runs[2]
    assert run.state is RunState.FAILED
    assert run.started_ns is not None
    assert run.ended_ns is not None
    [slow] = [injection for injection in measured.injections if injection.run_id == run.run_id]
    assert (slow.kind, slow.strength, slow.rank) == ("slow_rank", 200.0, 0)
    assert run.started_ns <= slow.started_ns < slow.ended_ns <= run.ended_ns


def test_what_the_workers_said_stays_and_the_scratch_folder_does_not(measured: Measured) -> None:
    folders = Folders(measured.store.home)
    assert (folders.logs / "lab-1" / "workers.log").is_file()
    assert (folders.logs / "lab-4" / "agent.log").is_file()
    assert not folders.scratch.exists()


def test_nothing_is_measured_twice(measured: Measured) -> None:
    steps: list[Step] = []
    assert run_plan(PLAN, measured.store, report=steps.append) == []
    assert steps == []


def test_exported_runs_come_back_as_they_were_and_only_once(measured: Measured, tmp_path: Path) -> None:
    sizes = export(measured.store, tmp_path / "samples")
    assert {"README.md", "runs.parquet", "step.parquet", "network.parquet", "process.parquet"} <= set(sizes)
    with Store.open(tmp_path / "again") as store:
        assert load_lab_runs(store, tmp_path / "samples") == 4
        assert load_lab_runs(store, tmp_path / "samples") == 0
        assert all_runs(store) == [replace(run, user=None, account=None) for run in all_runs(measured.store)]
        with store.catalog.read() as session:
            ids = [run.run_id for run in measured.runs]
            assert session.injections.of_runs(ids) == measured.injections
            assert session.ranks.of(ids[0]) == measured.ranks
        steps = "select * from step order by run_id, rank, step"
        pd.testing.assert_frame_equal(store.lake.frame(steps), measured.store.lake.frame(steps))
        network = rows_of_run(store, "network", ids[0])
        assert set(network["device"]) == {"eth0"}
        assert set(network["node"]) == {"lab-1", "lab-2"}
