"""JAX in real training of two processes over gloo, of which one is late before the step's program."""

import pytest
from tests.ingest.probe.adapters.conftest import Train
from tests.ingest.probe.adapters.frameworks import PYTHON, require
from tests.ingest.probe.adapters.launched import by_hand
from tests.ingest.probe.adapters.trained import Trained


@pytest.fixture(scope="module")
def training(train: Train) -> Trained:
    require("jax")
    return train("jax_gloo.py", launch=by_hand, python=PYTHON)


def test_the_late_process_is_recognized_by_its_arrival_alone(training: Trained) -> None:
    assert training.seen_by(0) == training.seen_by(1) == [("program", "update", None)]
    assert training.share_last(1, "update", 0) >= 0.95
    assert training.median_ms(0, "compute") > 80  # it waits within the program, where nobody sees it
    assert training.median_ms(0, "comm") == 0


def test_what_is_watched_can_be_lowered_as_before(training: Trained) -> None:
    assert all(rank["is_lowered"] for rank in training.reports)
