"""Workers and a parameter server over torch.distributed.rpc in real training of two ranks; worker 1 is late."""

import pytest
from tests.ingest.probe.adapters.conftest import Train
from tests.ingest.probe.adapters.trained import STEPS, Trained

MODEL_BYTES = 4 * (16 * 32 + 32 + 32 + 1)
CALL = ("rpc", "rpc worker0", 2 * MODEL_BYTES)  # gradients there, parameters back


@pytest.fixture(scope="module")
def synchronous(train: Train) -> Trained:
    return train("parameter_server.py", "synchronous")


@pytest.fixture(scope="module")
def asynchronous(train: Train) -> Trained:
    return train("parameter_server.py", "asynchronous")


def test_a_synchronous_update_is_one_call_that_ends_when_all_gradients_are_there(synchronous: Trained) -> None:
    assert synchronous.seen_by(0) == synchronous.seen_by(1) == [CALL]
    assert synchronous.share_last(1, "rpc worker0", 0) >= 0.95
    assert synchronous.median_ms(0, "comm") > 80 > synchronous.median_ms(1, "comm")


def test_an_asynchronous_worker_waits_for_nobody(asynchronous: Trained) -> None:
    assert asynchronous.seen_by(0, step=2) == [("rpc", "rpc worker0", MODEL_BYTES)] * 2  # fetch and update
    assert max(asynchronous.median_ms(rank, "comm") for rank in (0, 1)) < 40


def test_the_recorded_staleness_is_that_of_the_servers_own_log(asynchronous: Trained) -> None:
    recorded = asynchronous.progress.query("name == 'staleness'").sort_values(["rank", "step"])
    assert recorded["step"].tolist() == [*range(STEPS)] * 2
    for worker in (0, 1):
        by_server = [staleness for who, staleness in asynchronous.server_log if who == worker]
        assert recorded.query("rank == @worker")["value"].tolist() == by_server
    assert max(staleness for who, staleness in asynchronous.server_log if who == 1) > 1  # others went on meanwhile
