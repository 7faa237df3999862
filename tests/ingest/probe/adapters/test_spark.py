"""A barrier job of Spark whose two tasks train together, one of them late."""

import pytest
from tests.ingest.probe.adapters.conftest import Train
from tests.ingest.probe.adapters.frameworks import PYTHON, require
from tests.ingest.probe.adapters.launched import by_hand
from tests.ingest.probe.adapters.trained import Trained


@pytest.fixture(scope="module")
def training(train: Train) -> Trained:
    require("pyspark")
    return train("spark_barrier.py", ranks=1, launch=by_hand, python=PYTHON)


def test_the_late_task_computes_longer(training: Trained) -> None:
    assert training.median_ms(1, "compute") > 80 > training.median_ms(0, "compute")


def test_gathering_takes_a_second_for_spark_asks_once_a_second(training: Trained) -> None:
    assert training.median_ms(0, "comm") > 800
    assert training.seen_by(0) == training.seen_by(1) == [("spark_all_gather", "stage", 24)]
