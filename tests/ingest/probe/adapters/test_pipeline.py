"""Pipelines of two stages in real training; stage 0 is late with the first micro-batch of every step."""

import pytest
from tests.ingest.probe.adapters.conftest import Train
from tests.ingest.probe.adapters.trained import Trained

MICRO_BATCHES, BYTES = 4, 4 * 2 * 16
FORTH, BACK = "pipeline stage0>stage1 0>1", "pipeline stage1>stage0 1>0"


@pytest.fixture(scope="module", params=["gpipe", "1f1b"])
def training(request: pytest.FixtureRequest, train: Train) -> Trained:
    return train("pipeline.py", request.param)


def test_every_micro_batch_goes_forth_and_its_gradient_back(training: Trained) -> None:
    for rank in (0, 1):
        seen = training.seen_by(rank)
        assert sorted(seen) == [("transfer", group, BYTES) for group in (FORTH, BACK) for _ in range(MICRO_BATCHES)]


def test_gpipe_sends_all_before_it_receives_and_1f1b_turns_after_one(train: Train) -> None:
    def directions(schedule: str) -> list[str]:
        return [group for _, group, _ in train("pipeline.py", schedule).seen_by(1)]

    assert directions("gpipe") == [FORTH] * 4 + [BACK] * 4
    assert directions("1f1b") == [FORTH, BACK] * 4


def test_the_late_stage_is_last_to_the_first_transfer(training: Trained) -> None:
    assert training.share_last(0, FORTH, 0) >= 0.95


def test_the_next_stage_stands_still_and_its_first_transfer_is_the_bubble(training: Trained) -> None:
    assert training.median_ms(1, "comm") > 80 > training.median_ms(0, "comm")
    received = training.collectives.query("rank == 1 and group == @FORTH and step > 0").groupby("place")
    bubbles = received["duration_seconds"].median() / 1e6
    assert bubbles[0] > 80 > bubbles[1:].sum()
