from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.analytic.machine.constants import NAMES, SPREADS, Constants
from crosswind.models.analytic.prior.calibrate import calibrate, prior

WORK = np.tile(np.geomspace(0.1, 10, 20), 3)
LATENCY = np.repeat([0.0, 1.0, 10.0], 20)
TRUE = replace(Constants(), compute_efficiency=0.7, inside_latency_ratio=3.0)


def seconds(constants: Constants) -> Floats:
    return WORK / constants.compute_efficiency + LATENCY * constants.inside_latency_ratio


def first_seconds(count: int, constants: Constants) -> Floats:
    return seconds(constants)[:count]


def test_without_runs_the_priors_come_back() -> None:
    calibration = calibrate(lambda constants: np.empty(0), np.empty(0))
    assert calibration.constants == Constants.of_logs(Constants().logs())
    low, high = calibration.interval("overlap_ratio", level=0.95)
    assert (low, high) == pytest.approx((0.5 * np.exp(-1.96 * 0.7), 0.5 * np.exp(1.96 * 0.7)), rel=1e-3)


def test_exact_runs_give_their_constants_back() -> None:
    constants = calibrate(seconds, seconds(TRUE)).constants
    # 60 runs outweigh the priors by far, but not wholly.
    assert constants.compute_efficiency == pytest.approx(0.7, rel=0.01)
    assert constants.inside_latency_ratio == pytest.approx(3.0, rel=0.01)


def test_constants_that_runs_say_nothing_of_keep_their_priors() -> None:
    calibration = calibrate(seconds, seconds(TRUE))
    assert calibration.constants.overlap_ratio == pytest.approx(Constants().overlap_ratio)
    assert calibration.interval("overlap_ratio") == prior().interval("overlap_ratio")


def test_a_tenth_of_broken_runs_moves_the_constants_little() -> None:
    measured = seconds(TRUE)
    measured[::10] *= 5
    # Soft L1 leaves every broken run a pull of one spread: with 10 % of them a few percent, where squares give 17 %.
    assert calibrate(seconds, measured).constants.compute_efficiency == pytest.approx(0.7, rel=0.05)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    rng, held = np.random.default_rng(0), []
    for _ in range(100):
        measured = seconds(TRUE) * np.exp(0.1 * rng.standard_normal(len(WORK)))
        low, high = calibrate(seconds, measured).interval("compute_efficiency", level=0.9)
        held.append(low <= 0.7 <= high)
    # 100 trials at 0.9 have a standard error of 0.03; soft L1 and the prior's pull take a little more.
    assert np.mean(held) >= 0.8


def test_fewer_runs_leave_wider_intervals() -> None:
    rng = np.random.default_rng(0)
    measured = seconds(TRUE) * np.exp(0.1 * rng.standard_normal(len(WORK)))
    widths = []
    for count in (0, 4, 60):
        calibration = calibrate(partial(first_seconds, count), measured[:count])
        low, high = calibration.interval("compute_efficiency")
        widths.append(high / low)
    assert widths[0] > widths[1] > widths[2]


def test_every_constant_has_a_prior() -> None:
    assert set(SPREADS) == set(NAMES)


def test_impossible_times_levels_and_constants_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="measured seconds hold a number that is not positive"):
        calibrate(seconds, np.zeros(len(WORK)))
    with pytest.raises(InvalidInputError, match="constant is 'magic', expected one of compute_efficiency"):
        prior().interval("magic")
    with pytest.raises(InvalidInputError, match="level is 1"):
        prior().interval("overlap_ratio", level=1.0)
    with pytest.raises(InvalidInputError, match="overlap_ratio is 0"):
        Constants(overlap_ratio=0)
