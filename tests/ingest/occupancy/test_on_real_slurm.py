"""The places where a real Slurm ran what, as the agent reports them; needs root and Debian's Slurm packages."""

import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.slurm.running import Slurm, running

from crosswind.data.schema.occupancy import Allocation, Place, Placement, Source, merge_places
from crosswind.ingest.occupancy.occupancy import Occupancy
from crosswind.ingest.spool.records import ALLOCATION_KEY, PLACEMENT_KEY, PLACES

SCRIPTS = Path(__file__).parents[3] / "deploy" / "slurm"
pytestmark = [pytest.mark.host, pytest.mark.thorough]
TOLERANCE_NS = 2_000_000_000  # slurmd looks once a second whether a job's processes are gone, before its epilog
SECOND_NS = 1_000_000_000  # sacct cuts off what is below
KILL_WAIT_NS = 2_000_000_000  # of the cluster: sacct's end is the cancellation, the processes may go on so long
LOOK_SECONDS = 0.1
TASKS = "srun sh -c 'sleep 4; true'"  # a shell, and below it the program


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A cluster of its own, as it gets scripts that every job runs."""
    with running(tmp_path_factory.mktemp("slurm"), 2) as cluster:
        yield cluster


@dataclass
class Agent:
    """An agent's look at this host, taken again and again, and what it saw."""

    occupancy: Occupancy
    allocations: dict[tuple[Any, ...], Allocation] = field(default_factory=dict)
    placements: dict[tuple[Any, ...], Placement] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def look(self, stop: threading.Event) -> None:
        while not stop.wait(LOOK_SECONDS):
            self.occupancy.refresh()
            self.seen.update(self.occupancy.seen.job_ids)
            for record, value in self.occupancy.records():
                place = PLACES[record](value)
                if isinstance(place, Allocation):
                    merge_into(self.allocations, ALLOCATION_KEY, place)
                else:
                    merge_into(self.placements, PLACEMENT_KEY, place)

    def of_job(self, job_id: str) -> list[Allocation]:
        allocations = [allocation for allocation in self.allocations.values() if allocation.job_id == job_id]
        return sorted(allocations, key=lambda allocation: (allocation.node, allocation.restart_count))

    def ranks_of(self, job_id: str) -> list[Placement]:
        placements = [placement for placement in self.placements.values() if placement.job_id == job_id]
        return sorted(
            placements, key=lambda placement: (placement.step_id or "", placement.rank or 0, placement.start_ticks)
        )


def merge_into(places: dict[tuple[Any, ...], Place], names: tuple[str, ...], place: Place) -> None:
    key = tuple(getattr(place, name) for name in names)
    places[key] = merge_places(places[key], place) if key in places else place


@dataclass(frozen=True)
class Watched:
    """Slurm's accounts of the jobs, and what two agents saw: one that the prolog informs, and one that it does not."""

    ids: dict[str, str]
    accounts: dict[str, tuple[int, int]]
    with_prolog: Agent
    without_prolog: Agent


@pytest.fixture(scope="module")
def watched(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    directory = tmp_path_factory.mktemp("run") / "job.d"
    use_scripts(slurm, directory)
    with_prolog, without_prolog = Agent(Occupancy("host", job_directory=directory)), Agent(Occupancy("host"))
    stop = threading.Event()
    threads = [threading.Thread(target=agent.look, args=(stop,)) for agent in (with_prolog, without_prolog)]
    for thread in threads:
        thread.start()
    try:
        ids = run_jobs(slurm)
        time.sleep(2)  # the last epilogs
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    yield Watched(ids, accounts(slurm), with_prolog, without_prolog)
    assert list(directory.iterdir()) == []  # this agent may remove what it has read


def use_scripts(slurm: Slurm, directory: Path) -> None:
    """Has slurmd run the scripts that we deliver, with a folder of this test."""
    for name in ("prolog", "epilog"):
        script = slurm.home / name
        script.write_text(f"#!/bin/sh\nexec /usr/bin/env CROSSWIND_JOB_DIRECTORY={directory} {SCRIPTS}/{name}.sh\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    with (slurm.home / "etc/slurm.conf").open("a") as configuration:
        configuration.write(f"Prolog={slurm.home}/prolog\nEpilog={slurm.home}/epilog\nPrologFlags=Alloc\n")
    slurm.ask("scontrol", "reconfigure")


def run_jobs(slurm: Slurm) -> dict[str, str]:
    ids = {"two nodes": slurm.submit("two nodes", TASKS, "--nodes=2", "--ntasks=4")}
    slurm.wait_for_job(ids["two nodes"], "COMPLETED")
    ids["requeued"] = slurm.submit("requeued", "srun sleep 300", "--ntasks=1", "--requeue")
    slurm.wait_for_job(ids["requeued"], "RUNNING")
    time.sleep(1)  # long enough to be seen
    slurm.ask("scontrol", "requeue", ids["requeued"])
    slurm.wait_for_job(ids["requeued"], "PENDING")
    ids["array"] = slurm.submit("array", "srun sleep 3", "--array=0-2", "--ntasks=1")
    ids["cancelled"] = slurm.submit("cancelled", "srun sleep 300", "--ntasks=1")
    slurm.wait_for_job(ids["array"], "COMPLETED")
    slurm.wait_for_job(ids["cancelled"], "RUNNING")
    time.sleep(2)  # long enough to be seen in sacct's whole seconds
    slurm.ask("scancel", ids["cancelled"])
    slurm.wait_for_job(ids["cancelled"], "CANCELLED")
    slurm.ask("scontrol", "update", f"jobid={ids['requeued']}", "starttime=now")  # it would wait two minutes
    slurm.wait_for_job(ids["requeued"], "RUNNING")
    time.sleep(1)
    slurm.ask("scancel", ids["requeued"])
    slurm.wait_for_job(ids["requeued"], "CANCELLED")
    return ids


def accounts(slurm: Slurm) -> dict[str, tuple[int, int]]:
    """Start and end of every job in ns, by its raw id, as sacct has them."""
    words = ("sacct", "--noheader", "--allocations", "--parsable2", "--starttime=now-1hours")
    listing = slurm.ask("env", "SLURM_TIME_FORMAT=%s", *words, "--format=JobIDRaw,Start,End")
    lines = [line.split("|") for line in listing.splitlines()]
    return {job_id: (int(start) * 10**9, int(end) * 10**9) for job_id, start, end in lines}


def assert_as_accounted(allocation: Allocation, account: tuple[int, int], *, grace_ns: int = 0) -> None:
    assert allocation.started_ns is not None
    assert allocation.ended_ns is not None
    assert -TOLERANCE_NS <= allocation.started_ns - account[0] <= SECOND_NS + TOLERANCE_NS
    assert -TOLERANCE_NS <= allocation.ended_ns - account[1] <= SECOND_NS + TOLERANCE_NS + grace_ns


def test_a_job_on_two_nodes_is_allocated_there_when_sacct_says(watched: Watched) -> None:
    job_id = watched.ids["two nodes"]
    allocations = watched.with_prolog.of_job(job_id)
    assert [(part.node, part.sampled_as, part.system) for part in allocations] == [
        ("node1", "host", "crosswind"),
        ("node2", "host", "crosswind"),
    ]
    assert [(part.source, part.uid, part.cpus) for part in allocations] == [(Source.PROLOG, 0, 2)] * 2
    for allocation in allocations:
        assert_as_accounted(allocation, watched.accounts[job_id])


def test_its_four_tasks_are_ranks_0_to_3_two_on_each_node(watched: Watched) -> None:
    placements = watched.with_prolog.ranks_of(watched.ids["two nodes"])
    assert [(rank.rank, rank.node, rank.local_rank, rank.world_size, rank.step_id) for rank in placements] == [
        (0, "node1", 0, 4, "0"),
        (1, "node1", 1, 4, "0"),
        (2, "node2", 0, 4, "0"),
        (3, "node2", 1, 4, "0"),
    ]
    assert len({rank.pid for rank in placements}) == 4
    for placement in placements:
        assert placement.started_ns is not None
        assert placement.ended_ns is not None
        assert 3.5e9 < placement.ended_ns - placement.started_ns < 6e9  # the sleep below the shell, which took 4 s


def test_without_the_prolog_the_same_ranks_and_nodes_are_found_by_environment(watched: Watched) -> None:
    job_id = watched.ids["two nodes"]
    assert watched.without_prolog.placements.keys() == watched.with_prolog.placements.keys()
    allocations = watched.without_prolog.of_job(job_id)
    assert [(part.node, part.source, part.cpus) for part in allocations] == [
        ("node1", Source.ENVIRONMENT, 2),
        ("node2", Source.ENVIRONMENT, 2),
    ]
    for allocation in allocations:
        assert_as_accounted(allocation, watched.accounts[job_id])


@pytest.mark.parametrize("who", ["with_prolog", "without_prolog"])
def test_each_element_of_an_array_is_an_allocation_of_its_own(watched: Watched, who: str) -> None:
    agent: Agent = getattr(watched, who)
    array_id = watched.ids["array"]
    allocations = [part for part in agent.allocations.values() if (part.array_id or "").startswith(f"{array_id}_")]
    assert sorted(part.array_id or "" for part in allocations) == [f"{array_id}_{element}" for element in range(3)]
    for allocation in allocations:
        assert_as_accounted(allocation, watched.accounts[allocation.job_id])
        [rank] = agent.ranks_of(allocation.job_id)
        assert (rank.rank, rank.world_size, rank.node) == (0, 1, allocation.node)


@pytest.mark.parametrize("who", ["with_prolog", "without_prolog"])
def test_a_cancelled_job_has_ended(watched: Watched, who: str) -> None:
    agent: Agent = getattr(watched, who)
    job_id = watched.ids["cancelled"]
    [allocation] = agent.of_job(job_id)
    assert_as_accounted(allocation, watched.accounts[job_id], grace_ns=KILL_WAIT_NS)
    [rank] = agent.ranks_of(job_id)
    assert rank.ended_ns is not None
    assert allocation.ended_ns is not None
    assert rank.ended_ns <= allocation.ended_ns


@pytest.mark.parametrize("who", ["with_prolog", "without_prolog"])
def test_a_requeued_job_has_an_allocation_for_each_start(watched: Watched, who: str) -> None:
    agent: Agent = getattr(watched, who)
    job_id = watched.ids["requeued"]
    first, second = agent.of_job(job_id)
    assert (first.restart_count, second.restart_count) == (0, 1)
    assert first.ended_ns is not None
    assert second.started_ns is not None
    assert first.ended_ns < second.started_ns
    assert_as_accounted(second, watched.accounts[job_id], grace_ns=KILL_WAIT_NS)
    assert [rank.rank for rank in agent.ranks_of(job_id)] == [0, 0]


def test_every_job_was_seen_while_it_ran_and_none_is_seen_any_more(watched: Watched) -> None:
    assert watched.with_prolog.seen == watched.without_prolog.seen == watched.accounts.keys()
    assert watched.with_prolog.occupancy.seen.job_ids == watched.without_prolog.occupancy.seen.job_ids == ()
    assert watched.with_prolog.occupancy.seen.garbled_files == 0
