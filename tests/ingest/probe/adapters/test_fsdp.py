"""FSDP2 in real training of two ranks, of which one is late in the forward pass of the second block."""

import pytest
from tests.ingest.probe.adapters.conftest import Train
from tests.ingest.probe.adapters.trained import Trained

BLOCK_BYTES = 4 * (16 * 32 + 32 + 32 * 16 + 16)
REST_BYTES = 4 * 2 * (16 + 1)  # one row, padded to one for each rank
LATE, VICTIM = 1, 0


@pytest.fixture(scope="module")
def training(train: Train) -> Trained:
    return train("fsdp2.py")


def test_parameters_are_gathered_for_both_passes_and_gradients_scattered_once(training: Trained) -> None:
    forward = [("all_gather", "world", REST_BYTES), *[("all_gather", "world", BLOCK_BYTES)] * 2]
    backward = [("all_gather", "world", BLOCK_BYTES)] * 2
    scattered = [("reduce_scatter", "world", size) for size in (BLOCK_BYTES, REST_BYTES, BLOCK_BYTES)]
    assert training.seen_by(LATE) == training.seen_by(VICTIM) == forward + backward + scattered


def test_the_late_rank_is_last_to_the_gathering_of_the_block_behind_its_delay(training: Trained) -> None:
    assert training.share_last(LATE, "world", 1) <= 0.05  # the first block's, before it
    assert training.share_last(LATE, "world", 2) >= 0.95


def test_the_victim_waits_and_the_late_rank_computes(training: Trained) -> None:
    assert training.median_ms(VICTIM, "comm") > 80 > training.median_ms(LATE, "comm")
    assert training.median_ms(LATE, "compute") > 80 > training.median_ms(VICTIM, "compute")
