"""DeepSpeed's ZeRO in real training of two ranks, of which one is late between forward and backward.

It stands in the environment of `make frameworks`, which CROSSWIND_FRAMEWORKS may name.
"""

import os
import subprocess
from pathlib import Path

import pytest
from tests.ingest.adapters.conftest import Train
from tests.ingest.adapters.trained import Trained

FRAMEWORKS = Path(os.environ.get("CROSSWIND_FRAMEWORKS", Path(__file__).parents[3] / ".venv-frameworks"))
PYTHON = FRAMEWORKS / "bin" / "python"
MODEL_BYTES = 4 * (16 * 32 + 32 + 32 + 1)
ALIGNED_BYTES = 2320  # DeepSpeed pads what it shards
GRADIENTS = {  # stage: operation, group, bytes, and which of its group's collectives it is
    "1": ("all_reduce", "ranks 0,1", MODEL_BYTES, 0),
    "2": ("all_reduce", "ranks 0,1", MODEL_BYTES, 0),
    "3": ("reduce_scatter", "world", 2312, 1),
}


def has_deepspeed() -> bool:
    finds = [str(PYTHON), "-c", "import importlib.util as u, sys; sys.exit(not (u.find_spec('deepspeed')))"]
    return PYTHON.exists() and subprocess.run(finds, check=False).returncode == 0


@pytest.fixture(scope="module", params=["1", "2", "3"])
def stage(request: pytest.FixtureRequest) -> str:
    if not has_deepspeed():
        pytest.skip(f"no DeepSpeed for {PYTHON}: make frameworks")
    return str(request.param)


@pytest.fixture
def training(stage: str, train: Train) -> Trained:
    return train("deepspeed_zero.py", stage, python=PYTHON)


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
