"""The rest of columns once drift and cohorts are out, and how sure it is."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.association.associate import Association, Outcome, associate
from crosswind.models.association.bootstrap import Replicates, UnitSums, stability
from crosswind.models.association.design import RUNS_MIN, Design, ranks_in_cohorts
from crosswind.models.association.permutation import by_draws, by_moments, deviations, draws_for

Random = np.random.Generator


def design_of(count: int, cohorts: int = 1) -> Design:
    return Design.of(np.arange(count) * 10**9, np.arange(count) % cohorts)


def found_of(columns: Any, log_excess: Any, *, cohorts: int = 1) -> Association:
    """Columns and excess in the order of time."""
    design = design_of(len(log_excess), cohorts)
    ranks = ranks_in_cohorts(np.asarray(columns, np.float64), design.member)
    return associate(Outcome.of(design, np.asarray(log_excess)), [(ranks, ranks)], ranks.shape[1])


def test_steps_at_block_ends_trends_and_cohorts_leave_nothing() -> None:
    design = design_of(100, cohorts=2)
    time = np.arange(100.0)
    columns = np.column_stack([time, np.floor(time / 10) ** 3, time % 2])
    left = design.without(columns)
    assert np.abs(left).max() < 1e-9


def test_means_of_many_cohorts_are_taken_out_too() -> None:
    design = design_of(600, cohorts=150)
    random = np.random.default_rng(8)
    of_cohort = random.normal(0, 1, 150)[np.arange(600) % 150]
    assert design.has_many_cohorts
    assert design.without(of_cohort[:, None]).std() < 0.02


def test_runs_are_told_in_the_order_of_time() -> None:
    design = Design.of(np.array([5, 3, 9] * 10) * 10**9 + np.arange(30), np.zeros(30, np.int64))
    assert design.order[0] == 1
    assert design.order[-1] == 29
    assert design.sizes.tolist() == [10, 10, 10]


def test_too_few_runs_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="19 runs: expected 20 or more"):
        design_of(RUNS_MIN - 1)


def test_ranks_are_within_cohorts_and_gaps_stay() -> None:
    columns = np.array([[1.0], [100.0], [2.0], [100.0], [np.nan], [300.0]])
    ranks = ranks_in_cohorts(columns, np.array([0, 1, 0, 1, 0, 1]))[:, 0]
    assert ranks[[0, 2]].tolist() == [0.25, 0.75]
    assert ranks[[1, 3, 5]] == pytest.approx([1 / 3, 1 / 3, 5 / 6])
    assert np.isnan(ranks[4])


def test_what_follows_drift_alone_is_no_cause_but_what_adds_time_is() -> None:
    random = np.random.default_rng(1)
    drift = 0.5 * np.sin(np.arange(120) / 15)
    cause, drifting = random.random(120), drift + random.normal(0, 0.1, 120)
    association = found_of(np.column_stack([cause, drifting]), drift + 0.1 * cause + random.normal(0, 0.03, 120))
    assert scipy.stats.pearsonr(drifting, drift + 0.1 * cause).pvalue < 1e-6
    assert association.p[0] < 0.001 < 0.05 < association.p[1]
    assert 0.08 < association.slope[0] < 0.12
    assert association.rho_low[0] < association.rho[0] < association.rho_high[0]


def test_the_order_in_which_columns_come_and_monotone_scales_change_nothing() -> None:
    random = np.random.default_rng(2)
    columns, excess = random.random((60, 3)), random.normal(0, 1, 60)
    association, other = found_of(columns, excess), found_of(np.exp(5 * columns[:, ::-1]), excess)
    assert other.rho[::-1] == pytest.approx(association.rho)
    assert other.p[::-1] == pytest.approx(association.p)


def test_what_never_varies_within_a_cohort_is_not_compared() -> None:
    random = np.random.default_rng(3)
    cohort = np.arange(60) % 2
    association = found_of(
        np.column_stack([cohort, np.ones(60), random.random(60)]), random.normal(0, 1, 60), cohorts=2
    )
    assert np.isnan(association.p).tolist() == [True, True, False]
    assert np.isnan(association.rho_low).tolist() == [True, True, False]


def centred(design: Design, random: Random, columns: int) -> Any:
    return design.without(random.random((len(design.order), columns)))


def test_moments_and_draws_agree() -> None:
    random = np.random.default_rng(4)
    design = design_of(60)
    columns, outcome = centred(design, random, 5), centred(design, random, 1)[:, 0]
    drawn = by_draws(design, columns, outcome, 20_000, seed=0)
    from_moments = by_moments(columns.T @ outcome, deviations(design, columns, outcome))
    assert drawn == pytest.approx(from_moments, abs=0.03)  # the normal tail is not exact; the draws err by 0.0035


def test_permutations_stay_within_blocks() -> None:
    """A block that is all high stays so: what two columns share by block alone says nothing."""
    design = design_of(40)
    of_block = np.repeat([3.0, -3.0, 3.0, -3.0], 10)
    assert by_draws(design, of_block[:, None], of_block, 2000, seed=0).tolist() == [1.0]


@pytest.mark.thorough
def test_p_of_noise_is_even() -> None:
    """Of 300 columns of noise 15 should be below 0.05: four deviations of a binomial are 15."""
    random = np.random.default_rng(5)
    association = found_of(
        random.random((100, 300)), np.cumsum(random.normal(0, 0.02, 100)) + random.normal(0, 0.1, 100)
    )
    assert 1 <= (association.p < 0.05).sum() <= 30


def test_draws_are_enough_to_tell_or_none() -> None:
    assert draws_for(100, 300) == 60_000
    assert draws_for(100_000, 300) == 0
    assert draws_for(20, 1) == 2000


def test_a_run_far_away_does_not_make_an_effect() -> None:
    random = np.random.default_rng(6)
    exposed = np.zeros(100)
    exposed[random.choice(100, 20, replace=False)] = 1.0
    excess = random.normal(0, 0.05, 100)
    excess[np.flatnonzero(exposed)[0]] = 5.0
    association = found_of(exposed[:, None], excess)
    assert abs(np.exp(association.slope[0] / 2) - 1) < 0.05  # exposed and others are half a rank apart
    assert association.p[0] > 0.05


def test_a_strong_column_is_among_the_first_in_every_replicate() -> None:
    random = np.random.default_rng(7)
    outcome = random.normal(0, 1, 200)
    columns = random.normal(0, 1, (200, 40))
    columns[:, 3] += 2 * outcome
    replicates = Replicates.of(UnitSums.of(columns, outcome, columns, outcome), seed=0)
    shares = stability(replicates.rho)
    assert shares[3] == 1.0
    assert shares.sum() == pytest.approx(10)


def test_intervals_cover_the_truth() -> None:
    """Nine of ten intervals hold the slope of 0.1: of 100 trials 80 to 98, three deviations of a binomial."""
    covered = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        column = random.random(100)
        association = found_of(column[:, None], 0.1 * column + random.normal(0, 0.03, 100))
        covered += bool(association.slope_low[0] <= 0.1 <= association.slope_high[0])
    assert 80 <= covered <= 98
