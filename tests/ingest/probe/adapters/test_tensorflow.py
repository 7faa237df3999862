"""TensorFlow's MultiWorkerMirroredStrategy in real training of two workers, of which one is late to the all-reduce."""

import pytest
from tests.ingest.probe.adapters.conftest import Train
from tests.ingest.probe.adapters.frameworks import PYTHON, require
from tests.ingest.probe.adapters.launched import by_hand
from tests.ingest.probe.adapters.trained import Trained


@pytest.fixture(scope="module")
def training(train: Train) -> Trained:
    require("tensorflow")
    return train("tensorflow_mirrored.py", launch=by_hand, python=PYTHON)


def test_the_late_worker_is_last_to_the_all_reduce_and_its_victim_waits(training: Trained) -> None:
    assert training.seen_by(0) == training.seen_by(1) == [("all_reduce", "strategy", 16 * 4)]
    assert training.share_last(1, "strategy", 0) >= 0.95
    assert training.median_ms(0, "comm") > 80 > training.median_ms(1, "comm")


def test_what_is_watched_has_its_concrete_function_as_before(training: Trained) -> None:
    assert all(rank["is_concrete"] for rank in training.reports)
