"""Hugging Face's Trainer in real training of two ranks, of which one is late in its forward pass."""

from pathlib import Path

import pytest
from tests.ingest.probe.adapters.conftest import Train
from tests.ingest.probe.adapters.own_runs import FAILED_TRAINED_FAILED, own_runs
from tests.ingest.probe.adapters.trained import STEPS, Trained


@pytest.fixture
def training(train: Train) -> Trained:
    pytest.importorskip("accelerate", reason="no Trainer: pip install transformers accelerate")
    return train("hf_trainer.py")


def test_every_rank_has_every_step_and_training_is_as_without_the_probe(training: Trained) -> None:
    assert training.is_complete
    assert training.are_matched
    assert training.is_undisturbed
    assert training.is_restored


def test_the_late_rank_is_last_to_the_gradients_and_its_victim_waits(training: Trained) -> None:
    assert training.share_last(1, "data_parallel", 0) >= 0.95
    assert training.median_ms(0, "comm") > 80 > training.median_ms(1, "comm")
    assert training.median_ms(1, "compute") > 100


def test_evaluation_and_saving_belong_to_the_steps_that_they_follow(training: Trained) -> None:
    own = training.steps.query("rank == 1")
    assert own.query("other_seconds > 0")["step"].tolist() == [9, 19, STEPS - 1]
    assert own.query("checkpoint_seconds > 0")["step"].tolist() == [11, STEPS - 1]
    assert (own.query("other_seconds > 0")["other_seconds"] > 100e6).all()  # the late layer is part of it


def test_the_evaluation_before_the_first_step_is_in_none(training: Trained) -> None:
    [first] = training.steps.query("rank == 1 and step == 0")["input_seconds"]
    assert first < 100e6  # which the late layer takes alone


def test_the_loss_of_each_step_is_recorded(training: Trained) -> None:
    assert training.progress.query("rank == 0 and name == 'loss'")["step"].tolist() == list(range(STEPS))


@pytest.mark.thorough
def test_a_callback_without_a_run_opens_one_for_each_training(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="no Trainer: pip install transformers accelerate")
    assert own_runs(tmp_path, "hf_own_runs.py") == FAILED_TRAINED_FAILED
