"""Batches and power limits."""

import numpy as np
import pandas as pd
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.energy.batch_curve import BatchCurve
from crosswind.models.energy.device_jobs import DeviceJobs
from crosswind.models.energy.power_limit import PowerLimitCurve

BATCHES = np.log([8.0, 16.0, 32.0, 64.0, 128.0, 256.0])


def seconds(log_batches: object) -> object:
    """1000 s of launches at batch 1, and 20 s of computing, whichever the batch."""
    return 0.5 * np.logaddexp(2 * (np.log(1000.0) - np.asarray(log_batches)), 2 * np.log(20.0))


def test_a_batch_curve_goes_through_what_was_measured_and_on_by_its_law() -> None:
    curve = BatchCurve.of(BATCHES[1:-1], np.asarray(seconds(BATCHES[1:-1])))
    assert curve.log_seconds(BATCHES[1:-1]) == pytest.approx(seconds(BATCHES[1:-1]))
    assert curve.log_seconds(BATCHES[[0, -1]]) == pytest.approx(seconds(BATCHES[[0, -1]]), abs=0.05)


def test_a_batch_curve_needs_a_row() -> None:
    with pytest.raises(InvalidInputError, match="a row at least"):
        BatchCurve.of(np.empty(0), np.empty(0))


def test_a_limit_above_the_demand_does_nothing_and_one_below_slows_down() -> None:
    curve = PowerLimitCurve()
    assert curve.log_slowdown(np.array([1.0]))[0] == pytest.approx(0.0, abs=0.01)
    assert curve.log_draw(np.array([1.0]))[0] == pytest.approx(0.0, abs=0.01)
    below = np.linspace(-2, 0, 20)
    assert np.all(np.diff(curve.log_slowdown(below)) < 0)
    assert np.all(np.diff(curve.log_draw(below)) > 0)


def test_below_the_lowest_clock_nothing_changes_any_more() -> None:
    curve = PowerLimitCurve(log_headroom_min=-1.0)
    assert curve.log_slowdown(np.array([-4.0])) == pytest.approx(curve.log_slowdown(np.array([-3.0])), abs=1e-3)
    assert curve.log_draw(np.array([-4.0])) == pytest.approx(curve.log_draw(np.array([-3.0])), abs=1e-3)


def test_the_curve_that_made_the_rows_is_found() -> None:
    truth = PowerLimitCurve(steepness=0.65, knee=-0.2)
    headrooms = np.linspace(-1.5, 0.8, 40)
    curve = PowerLimitCurve.of(headrooms, truth.log_slowdown(headrooms), truth.log_draw(headrooms))
    assert curve.log_slowdown(headrooms) == pytest.approx(truth.log_slowdown(headrooms), abs=0.02)
    assert curve.log_draw(headrooms) == pytest.approx(truth.log_draw(headrooms), abs=0.02)


def test_too_few_rows_under_limits_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="2 rows under a power limit, expected 3"):
        PowerLimitCurve.of(np.zeros(2), np.zeros(2), np.zeros(2))


def test_tables_of_jobs_are_checked() -> None:
    rows = pd.DataFrame({"job": ["a"], "batch": [8], "limit_watts": [250.0], "seconds": [1.0], "watts": [0.0]})
    with pytest.raises(InvalidInputError, match=r"watts of row 0 is 0\.0, expected a positive number"):
        DeviceJobs.of(rows)
    with pytest.raises(InvalidInputError, match="has no column watts"):
        DeviceJobs.of(rows.drop(columns="watts"))
    with pytest.raises(InvalidInputError, match="has no row"):
        DeviceJobs.of(rows.iloc[:0])
