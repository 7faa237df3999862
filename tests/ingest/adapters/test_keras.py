"""Keras' fit in two processes that train apart, of which one has a late loader."""

import pytest
from tests.ingest.adapters.frameworks import Record, recorded, require


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    require("keras")
    return recorded(tmp_path_factory.mktemp("keras"), "keras_fit.py")


def test_every_rank_has_every_step_and_training_is_as_without_the_probe(record: Record) -> None:
    assert record.is_complete
    assert record.is_undisturbed


def test_a_late_loader_counts_as_compute_for_tensorflow_fetches_within_its_program(record: Record) -> None:
    assert record.median_ms(1, "compute") > 80 > record.median_ms(0, "compute")


def test_validation_belongs_to_the_step_that_comes_after(record: Record) -> None:
    own = record.steps.query("rank == 0 and other_seconds > 0")
    assert own["step"].tolist() == [12]  # the second one comes after all steps
