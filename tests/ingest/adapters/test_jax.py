"""JAX in real training of two processes over gloo, of which one is late before the step's program."""

import pytest
from tests.ingest.adapters.frameworks import Record, recorded, require
from tests.ingest.adapters.trained import free_port


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    require("jax")
    return recorded(tmp_path_factory.mktemp("jax"), "jax_gloo.py", str(free_port()))


def test_every_rank_has_every_step_and_training_is_as_without_the_probe(record: Record) -> None:
    assert record.is_complete
    assert record.is_undisturbed


def test_the_late_process_is_told_by_its_arrival_alone(record: Record) -> None:
    assert record.share_late(1, by_ms=50) >= 0.95
    assert set(zip(record.collectives["operation"], record.collectives["group"], strict=True)) == {
        ("program", "update")
    }
    assert record.median_ms(0, "compute") > 80  # it waits within the program, where nobody sees it
    assert record.median_ms(0, "comm") == 0
