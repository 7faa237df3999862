"""Faults of one run: records of them when the kernel refuses, and when they end by themselves."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.ingest.lab.observed import first_core, running_companions
from tests.ingest.lab.traffic import in_a_lab

from crosswind.ingest.lab.conditions import Conditions
from crosswind.ingest.lab.hosts.companion import EndedEarlyError
from crosswind.ingest.lab.hosts.hosts import Host, hosts
from crosswind.ingest.lab.hosts.programs import ask
from crosswind.ingest.lab.injection import Applied, FaultRemainsError, Injection
from crosswind.ingest.lab.injectors import Target
from crosswind.ingest.lab.stage import Scene, Stage
from crosswind.ingest.lab.workers.crew import Post, Worker
from crosswind.ingest.lab.workers.order import Order

pytestmark = in_a_lab
HOG, LOSS, SLOW = (
    Injection("cpu_hog", 1.0, 0, 0),
    Injection("packet_loss", 1.0, 0, 0),
    Injection("slow_input", 9.0, 0, 0),
)


@dataclass(frozen=True)
class Asleep(Post):
    """A worker's place in which nobody trains."""

    def command(self) -> list[str]:
        return self.host.command(["sleep", "1000"])


@pytest.fixture
def worker(net: tuple[Host, ...], tmp_path: Path) -> Iterator[Worker]:
    folders = {"spool": tmp_path, "run_directory": tmp_path, "scratch": tmp_path}
    post = Asleep(
        host=net[0], slot=0, node="lab-1", conditions=tmp_path / "conditions", log=tmp_path / "log", **folders
    )
    worker = Worker(post, "test")
    yield worker
    worker.end()


@pytest.fixture
def conditions(tmp_path: Path) -> Conditions:
    return Conditions.create(tmp_path / "conditions", 1)


@pytest.fixture
def stage(net: tuple[Host, ...], worker: Worker, conditions: Conditions, tmp_path: Path) -> Stage:
    order = Order("r1", "none", 0, 1, 0, "", 0, (first_core(),), 1, 1, 1.0, 1, 0, "direct")
    return Stage(Scene(net, conditions, tmp_path), [(worker, order)])


def end_the_hog() -> None:
    [pid] = [pid for pid in running_companions() if Path("/proc", str(pid)).stat().st_uid == 65534]
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def test_what_was_switched_on_and_off_is_the_truth(stage: Stage, conditions: Conditions) -> None:
    stage.begin(SLOW)
    stage.begin(LOSS)
    assert conditions.get(0, "slow_input_ms") == 9.0
    assert stage.truths == []
    stage.end(LOSS)
    assert [truth.kind for truth in stage.truths] == ["packet_loss"]
    stage.end_all()
    assert [truth.kind for truth in stage.truths] == ["slow_input", "packet_loss"]
    assert stage.refusal is None


def test_all_other_faults_are_switched_off_when_the_kernel_refuses_one(
    stage: Stage, net: tuple[Host, ...], conditions: Conditions
) -> None:
    for injection in (HOG, LOSS, SLOW):
        stage.begin(injection)
    end_the_hog()
    ask("ip", "netns", "exec", net[0].bridge, "nft", "delete", "table", "bridge", f"loss_{net[0].port}")
    stage.end_all()
    assert [truth.kind for truth in stage.truths] == ["slow_input"]
    assert conditions.get(0, "slow_input_ms") == 0.0
    assert isinstance(stage.refusal, FaultRemainsError)
    assert str(stage.refusal).startswith("packet_loss on lab-1 cannot be switched off, so the lab ends: ip netns exec")


def test_a_fault_that_ended_by_itself_is_no_truth_but_does_not_remain(stage: Stage) -> None:
    stage.begin(HOG)
    end_the_hog()
    with pytest.raises(EndedEarlyError, match="1 of 1 processes ended before the request"):
        stage.end(HOG)
    stage.end_all()
    assert isinstance(stage.refusal, EndedEarlyError)
    assert stage.truths == []


def test_a_start_that_was_refused_half_way_is_taken_back(tmp_path: Path) -> None:
    with hosts(1, megabits=100) as (host,):
        ask("ip", "-n", host.bridge, "link", "set", host.port, "down")
        ask("ip", "-n", host.bridge, "link", "set", host.port, "name", "gone")
        target = Target(host, (), 0, tmp_path, Conditions.create(tmp_path / "conditions", 1))
        with pytest.raises(FaultRemainsError, match="rate_cap on lab-1 cannot be switched off"):
            Applied(Injection("rate_cap", 20.0, 0, 0), target, "lab-1")
        assert "rate 100Mbit" in ask("tc", "-n", host.namespace, "qdisc", "show", "dev", host.device)
