"""DeepSpeed's ZeRO in real training of two ranks, of which one is late between forward and backward."""

import pytest
from tests.ingest.probe.adapters.conftest import Train
from tests.ingest.probe.adapters.frameworks import PYTHON, require
from tests.ingest.probe.adapters.launched import torchrun
from tests.ingest.probe.adapters.trained import Trained

MODEL_BYTES = 4 * (16 * 32 + 32 + 32 + 1)
GRADIENTS = {  # stage: operation, group, bytes, and which of its group's collectives it is
    "1": ("all_reduce", "ranks 0,1", MODEL_BYTES, 0),
    "2": ("all_reduce", "ranks 0,1", MODEL_BYTES, 0),
    "3": ("reduce_scatter", "world", 2312, 1),  # it pads what it shards
}


@pytest.fixture(scope="module", params=["1", "2", "3"])
def stage(request: pytest.FixtureRequest) -> str:
    require("deepspeed")
    return str(request.param)


@pytest.fixture
def training(stage: str, train: Train) -> Trained:
    return train("deepspeed_zero.py", stage, launch=torchrun, python=PYTHON)


def test_every_rank_has_every_step_and_training_is_as_without_the_probe(training: Trained) -> None:
    assert training.is_complete
    assert training.are_matched
    assert training.is_undisturbed
    assert training.is_restored


def test_the_late_rank_is_last_to_the_gradients(stage: str, training: Trained) -> None:
    operation, group, size, place = GRADIENTS[stage]
    assert training.seen_by(0, step=3)[place] == (operation, group, size)
    assert training.share_last(1, group, place) >= 0.95


def test_the_victim_waits(training: Trained) -> None:
    assert training.median_ms(0, "comm") > 80 > training.median_ms(1, "comm")
