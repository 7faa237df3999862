"""A laboratory in which the kernel refuses to take a fault away."""

import os
import threading
import time
from pathlib import Path

import pytest
from tests.ingest.lab.traffic import in_a_lab

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.run import RunState
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.ingest.lab.campaign import Step, run_plan
from crosswind.ingest.lab.folders import Folders
from crosswind.ingest.lab.hosts.hosts import NAMESPACES
from crosswind.ingest.lab.hosts.programs import ask
from crosswind.ingest.lab.injection import FaultRemainsError
from crosswind.ingest.lab.plans.plan import Cohort, Plan, PlannedFault, PlannedRun

COHORT = Cohort("image-classifier", 2, 4, 1.0)
FAULTS = PlannedFault("packet_loss", 0.001, rank=0), PlannedFault("slow_rank", 50.0, rank=1)
PLAN = Plan("stuck", (PlannedRun(0, COHORT, FAULTS, None, "train", 0), PlannedRun(1, COHORT, (), None, "train", 1)))


@pytest.mark.thorough
@in_a_lab
def test_nothing_is_measured_under_a_fault_that_remains_and_the_next_laboratory_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    meddler = threading.Thread(target=take_the_loss_away)

    def begin_meddling(step: Step) -> None:
        if step.planned.number == 0:
            meddler.start()

    with Store.open(tmp_path) as store:
        with pytest.raises(
            FaultRemainsError, match=r"packet_loss on lab-1 cannot be switched off, so the lab ends: ip"
        ):
            run_plan(PLAN, store, report=begin_meddling)
        meddler.join()
        assert states(store) == {"0000": RunState.FAILED}
        with store.catalog.read() as session:
            assert [
                injection.kind for injection in session.injections.of_runs([run.run_id for run in all_runs(store)])
            ] == ["slow_rank"]
        assert not list(NAMESPACES.glob(f"cwlab-{os.getpid()}-*"))
        assert not Folders(tmp_path).scratch.exists()
        assert run_plan(PLAN, store) == []
        assert states(store) == {"0000": RunState.FAILED, "0001": RunState.COMPLETED}


def states(store: Store) -> dict[str, RunState]:
    return {run.tags["position"]: run.state for run in all_runs(store)}


def take_the_loss_away() -> None:
    """As soon as the fault is there, so that the lab's own command is refused."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for bridge in NAMESPACES.glob(f"cwlab-{os.getpid()}-*-net"):
            try:
                ask("ip", "netns", "exec", bridge.name, "nft", "delete", "table", "bridge", "loss_port0")
            except UnavailableError:
                continue
            return
        time.sleep(0.1)
