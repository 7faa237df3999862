from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.model import Evidence, Learned
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.registry.drift import (
    FALSE_ALARM,
    LOSS_ROWS_MIN,
    LaterRuns,
    cusum,
    cusum_limit,
    drift_of,
    undercoverage_odds,
)
from crosswind.models.registry.evidence import evidence_of
from crosswind.models.surrogate import LEVELS

QUANTILES = np.exp(0.1 * norm.ppf(LEVELS))  # of runs whose log seconds are normal, with 10 % of noise
VALIDATED = 60


def runs(count: int, seed: int, *, slower: float = 1.0, noise: float = 0.1) -> Floats:
    return slower * np.exp(noise * np.random.default_rng(seed).normal(size=count))


def promise(count: int) -> Prediction:
    return Prediction(LEVELS, np.tile(QUANTILES, (count, 1)))


def shown(seed: int) -> Evidence:
    return evidence_of(Learned(100, 0, 99), promise(VALIDATED), runs(VALIDATED, seed), {})


def later(y: Floats) -> LaterRuns:
    return LaterRuns(100 + np.arange(len(y)), promise(len(y)), y)


def test_the_odds_are_the_mean_of_likelihood_ratios_over_all_smaller_shares() -> None:
    shares = (np.arange(100_000) + 0.5) / 100_000 * 0.9
    held = np.array([True, False, False])
    ratios = [shares / 0.9, *[(1 - shares) / 0.1] * 2]
    expected = [np.mean(np.prod(ratios[:count], axis=0)) for count in (1, 2, 3)]
    assert undercoverage_odds(held, 0.9) == pytest.approx(expected, rel=1e-6)


def test_runs_that_all_keep_the_promise_or_none_have_finite_odds() -> None:
    assert np.all(undercoverage_odds(np.ones(100_000, dtype=np.bool_), 0.9) < 1)
    assert np.isfinite(undercoverage_odds(np.zeros(100_000, dtype=np.bool_), 0.9)).all()


def test_a_model_at_the_edge_of_its_promise_is_rarely_taken_back_however_often_one_looks() -> None:
    # Ville's inequality bounds the share of false alarms by 1 %; of 1000 sequences, 21 or more then have p < 0.001.
    random = np.random.default_rng(0)
    alarms = [np.max(undercoverage_odds(random.random(500) < 0.9, 0.9)) >= 1 / FALSE_ALARM for _ in range(1000)]
    assert sum(alarms) <= 20


def test_cusum_adds_what_exceeds_the_allowance_and_forgets_what_is_below() -> None:
    validation = np.array([1.0, 2.0, 3.0])  # mean 2, standard deviation 1
    assert cusum(np.array([3.0, 3.0, 0.0, 3.0, 9.0]), validation).tolist() == [0.5, 1.0, 0.0, 0.5, 1.0]


def test_the_limit_is_passed_by_few_sequences_like_the_validation() -> None:
    # The limit's own share is 1 % of new sequences and new validations; of 200, 9 or more then have p < 0.001.
    validations = np.abs(np.random.default_rng(3).normal(size=(200, VALIDATED)))
    fresh = np.abs(np.random.default_rng(4).normal(size=(200, 300)))
    limit = cusum_limit(validations[0])
    assert (
        sum(np.max(cusum(losses, validation)) >= limit for losses, validation in zip(fresh, validations, strict=True))
        <= 8
    )


def test_runs_like_before_are_no_drift() -> None:
    # At most 1 % each of two tests may be false; of 20, 4 or more then have p < 0.001.
    assert sum(drift_of(shown(seed), later(runs(300, seed + 100))).reason is not None for seed in range(20)) <= 3


def test_runs_that_became_slower_are_drift_within_a_hundred() -> None:
    # Of 60 repetitions, half were found within 40 runs and 98 % within 1000; the seed is fixed.
    reason = drift_of(shown(1), later(runs(100, 7, slower=1.15))).reason
    assert reason is not None
    assert reason.startswith("drift: of 100 later runs ")
    assert "lay at or below P90, expected at least 8" in reason


def test_runs_that_became_faster_are_drift_too() -> None:
    reason = drift_of(shown(1), later(runs(100, 7, slower=0.85))).reason
    assert reason is not None
    assert "lay at or above P10" in reason


def test_runs_that_became_noisier_are_drift() -> None:
    assert drift_of(shown(1), later(runs(100, 7, noise=0.25))).reason is not None


def test_losses_that_rose_are_told_where_coverage_is_not_known() -> None:
    reason = drift_of(replace(shown(1), coverage=()), later(runs(200, 7, noise=0.3))).reason
    assert reason is not None
    assert reason.startswith("drift: its loss is ")


def test_few_validation_losses_are_not_compared_with() -> None:
    evidence = shown(1)
    drift = drift_of(replace(evidence, row_losses=evidence.row_losses[: LOSS_ROWS_MIN - 1]), later(runs(10, 2)))
    assert (drift.loss_excess, drift.rows) == (None, 10)
    assert drift.coverage_odds is not None


def test_runs_within_the_data_window_do_not_count() -> None:
    y = np.concatenate([runs(100, 1, slower=3), runs(50, 2)])
    mixed = LaterRuns(np.arange(150), promise(150), y)
    drift = drift_of(shown(1), mixed)
    assert (drift.rows, drift.reason) == (50, None)
    assert drift_of(shown(1), LaterRuns(np.arange(100), promise(100), y[:100])).rows == 0


def test_later_runs_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="have 2, 3 and 3 rows"):
        LaterRuns(np.arange(2), promise(3), runs(3, 0))
    with pytest.raises(InvalidInputError, match="started_ns falls"):
        LaterRuns(np.array([2, 1]), promise(2), runs(2, 0))
    with pytest.raises(InvalidInputError, match="the prediction has levels"):
        drift_of(shown(0), LaterRuns(np.array([100]), Prediction((0.5,), np.ones((1, 1))), np.ones(1)))
