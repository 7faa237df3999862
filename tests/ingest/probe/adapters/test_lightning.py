"""Lightning in real training of two ranks, of which one is late in its forward pass."""

from pathlib import Path

import pytest
from tests.ingest.probe.adapters.conftest import Train
from tests.ingest.probe.adapters.own_runs import FAILED_TRAINED_FAILED, own_runs
from tests.ingest.probe.adapters.trained import STEPS, Trained
from tests.ingest.spooled import rows


@pytest.fixture
def training(train: Train) -> Trained:
    pytest.importorskip("lightning", reason="no Lightning: pip install lightning")
    return train("lightning_ddp.py")


def test_every_rank_has_every_step_and_training_is_as_without_the_probe(training: Trained) -> None:
    assert training.is_complete
    assert training.are_matched
    assert training.is_undisturbed
    assert training.is_restored


def test_the_late_rank_is_last_to_the_gradients_and_its_victim_waits(training: Trained) -> None:
    assert training.share_last(1, "data_parallel", 0) >= 0.95
    assert training.median_ms(0, "comm") > 80 > training.median_ms(1, "comm")
    assert training.median_ms(1, "compute") > 100


def test_validation_and_saving_belong_to_the_steps_that_come_after(training: Trained) -> None:
    own = training.steps.query("rank == 1")
    assert own.query("other_seconds > 0")["step"].tolist() == [10, 20]
    assert own.query("checkpoint_seconds > 0")["step"].tolist() == [12]  # the last one comes after all steps


def test_the_loss_of_each_step_is_recorded(training: Trained) -> None:
    assert training.progress.query("rank == 0 and name == 'loss'")["step"].tolist() == list(range(STEPS))


@pytest.mark.thorough
def test_a_callback_without_a_run_opens_one_for_each_training_and_sees_the_users_own_saving(tmp_path: Path) -> None:
    pytest.importorskip("lightning", reason="no Lightning: pip install lightning")
    assert own_runs(tmp_path, "lightning_own_runs.py") == FAILED_TRAINED_FAILED
    saving = rows(tmp_path / "spool", "step").query("checkpoint_seconds > 0")
    assert saving[["run_id", "step"]].values.tolist() == [["trained-part2", 3]]
