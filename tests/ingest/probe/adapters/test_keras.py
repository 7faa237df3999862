"""Keras' fit in two processes that train apart, of which one has a late loader."""

from pathlib import Path

import pytest
from tests.ingest.probe.adapters.frameworks import PYTHON, recorded, require
from tests.ingest.probe.adapters.own_runs import FAILED_TRAINED_FAILED, own_runs
from tests.ingest.probe.adapters.trained import Trained


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    require("keras")
    return recorded(tmp_path_factory.mktemp("keras"), "keras_fit.py")


def test_every_rank_has_every_step_and_training_is_as_without_the_probe(record: Trained) -> None:
    assert record.is_complete
    assert record.is_undisturbed


def test_a_late_loader_counts_as_compute_for_tensorflow_fetches_within_its_program(record: Trained) -> None:
    assert record.median_ms(1, "compute") > 80 > record.median_ms(0, "compute")


def test_validation_belongs_to_the_step_that_comes_after(record: Trained) -> None:
    own = record.steps.query("rank == 0 and other_seconds > 0")
    assert own["step"].tolist() == [12]  # the second one comes after all steps


def test_a_callback_without_a_run_opens_one_for_each_training(tmp_path: Path) -> None:
    require("keras")
    assert own_runs(tmp_path, "keras_own_runs.py", PYTHON) == FAILED_TRAINED_FAILED
