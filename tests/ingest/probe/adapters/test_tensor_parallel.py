"""Tensor parallelism in real training of two ranks, and with FSDP2 in another dimension of four."""

import pytest
from tests.ingest.probe.adapters.conftest import Train
from tests.ingest.probe.adapters.trained import Trained

ACTIVATION_BYTES = 4 * 8 * 16
SHARD_BYTES = 4 * (16 * 16 + 16 + 16 * 16 + 16)  # what a rank of `tp` has of the model


@pytest.fixture(scope="module")
def training(train: Train) -> Trained:
    """Rank 1 is late between forward and backward."""
    return train("tensor_parallel.py")


@pytest.fixture(scope="module")
def hybrid(train: Train) -> Trained:
    """Rank 3 is late before its forward pass."""
    return train("hybrid.py", ranks=4)


def test_activations_are_reduced_in_both_passes(training: Trained) -> None:
    forward, backward = 2, 1  # the first block's input wants no gradient
    expected = [("all_reduce", "world", ACTIVATION_BYTES)] * (forward + backward)
    assert training.seen_by(0) == training.seen_by(1) == expected


def test_the_late_rank_is_last_to_the_first_all_reduce_of_backward(training: Trained) -> None:
    assert training.share_last(1, "world", 1) <= 0.05  # the last one of forward, before its delay
    assert training.share_last(1, "world", 2) >= 0.95


def test_its_peer_waits(training: Trained) -> None:
    assert training.median_ms(0, "comm") > 80 > training.median_ms(1, "comm")


@pytest.mark.host
def test_dimensions_of_a_mesh_are_groups_of_their_own(hybrid: Trained) -> None:
    for rank, (sharded, split) in enumerate([("0,2", "0,1"), ("1,3", "0,1"), ("0,2", "2,3"), ("1,3", "2,3")]):
        assert hybrid.seen_by(rank) == [
            ("all_gather", f"dp {sharded}", SHARD_BYTES),
            ("all_reduce", f"tp {split}", ACTIVATION_BYTES),
            ("reduce_scatter", f"dp {sharded}", SHARD_BYTES),
        ]


@pytest.mark.host  # four ranks on two cores: who is last is the machine's doing where others compute
def test_a_late_rank_is_last_in_its_groups_and_its_first_victim_in_the_other_ones(hybrid: Trained) -> None:
    assert hybrid.share_last(3, "dp 1,3", 0) >= 0.95
    assert hybrid.share_last(3, "tp 2,3", 0) >= 0.95
    assert hybrid.share_last(1, "tp 0,1", 0) >= 0.95  # it has waited for rank 3
    assert hybrid.share_last(2, "dp 0,2", 0) <= 0.05
