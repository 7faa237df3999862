"""Weights by ranks."""

import numpy as np
import pytest

from crosswind.models.transfer.ranking import agreement, chance_of_agreement, misranked, ranking_weights

MEASURED = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])


def test_pairs_in_the_wrong_order_count_one_and_ties_half() -> None:
    assert misranked(np.array([1.0, 3.0, 2.0]), MEASURED[:3]).tolist() == [0, 0, 1]
    assert misranked(np.array([1.0, 1.0]), MEASURED[:2]).tolist() == [0.5]


def test_agreement_is_1_in_order_and_minus_1_reversed() -> None:
    assert agreement(MEASURED**2, MEASURED) == 1.0
    assert agreement(-MEASURED, MEASURED) == -1.0
    assert agreement(MEASURED[:1], MEASURED[:1]) == 0.0


def test_three_runs_in_order_are_luck_in_one_of_six() -> None:
    assert chance_of_agreement(MEASURED[:3], MEASURED[:3]) == pytest.approx(1 / 6)
    assert chance_of_agreement(np.ones(3), MEASURED[:3]) == 1.0


def test_a_source_in_order_takes_the_weight_from_a_target_model_that_knows_nothing() -> None:
    weights = ranking_weights([MEASURED, -MEASURED], np.full(6, 3.5), MEASURED, seed=0)
    # A resample of six copies of one run has no pairs, so all share it: 6 of 6^6.
    assert weights == pytest.approx([1.0, 0.0, 0.0], abs=0.01)
    assert weights[1] == 0.0


def test_below_three_runs_the_sources_share_alike() -> None:
    assert ranking_weights([MEASURED[:2], -MEASURED[:2]], MEASURED[:2], MEASURED[:2], seed=0).tolist() == [0.5, 0.5, 0]


def test_many_poor_sources_do_not_crowd_out_a_good_target_model() -> None:
    rng = np.random.default_rng(0)
    poor = [rng.permutation(MEASURED) for _ in range(30)]
    assert ranking_weights(poor, MEASURED, MEASURED, seed=0)[-1] > 0.9
