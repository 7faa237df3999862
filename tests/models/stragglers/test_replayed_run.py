"""Runs replayed with equal ranks, from what is stored of them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.models.stragglers.made_up_steps import USUAL, Late, step_rows
from tests.models.stragglers.test_live import put

from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.store.store import Store
from crosswind.models.stragglers.operations import sequence_imbalance
from crosswind.models.stragglers.replayed_run import replayed_run


def test_a_run_of_steps_is_replayed_from_its_waits(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        put(store, "late", step_rows(3, 100, Late(1, USUAL / 2, "input", 0)), 3)
        answer = replayed_run(store, "late")
        assert (answer.basis, answer.ranks, answer.sequence) == ("steps", 3, None)
        assert answer.by_rank[0].number == 1
        assert answer.slowdown_ratio > 1.3
        assert answer.by_rank[0].mended_ratio == pytest.approx(answer.slowdown_ratio, rel=0.05)
        with pytest.raises(NotFoundError):
            replayed_run(store, "nobody")


def test_a_run_without_waits_is_refused_with_what_is_needed(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        put(store, "alone", step_rows(1, 20), 1)
        with pytest.raises(InvalidInputError, match=r"run 'alone': no steps after warm-up .* expected those"):
            replayed_run(store, "alone")


def micro_batches(likeness: float) -> pd.DataFrame:
    """Forward and backward times of 200 micro-batches, whose lengths they follow to this degree."""
    chance = np.random.default_rng(5)
    length, noise = chance.normal(1.0, 0.1, 200), chance.normal(1.0, 0.1, 200)
    backward = likeness * length + (1 - likeness) * noise
    frame = pd.DataFrame({"step": 0, "rank": 0, "stage": 0, "chunk": 0, "micro_batch": np.arange(200)})
    kinds = {"forward-compute": length, "backward-compute": 2 * backward}
    return pd.concat([frame.assign(operation=kind, duration=times) for kind, times in kinds.items()])


def test_sequences_of_unequal_lengths_show_in_both_directions() -> None:
    unequal, equal = sequence_imbalance(micro_batches(1.0)), sequence_imbalance(micro_batches(0.2))
    assert unequal is not None
    assert equal is not None
    assert (unequal.is_imbalanced, equal.is_imbalanced) == (True, False)
    assert unequal.correlation == pytest.approx(1.0)
    assert unequal.spread_ratio == pytest.approx(0.1, rel=0.15)  # of 200 drawn lengths
    assert sequence_imbalance(micro_batches(1.0).iloc[:20]) is None
