import math

import numpy as np
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.baseline import BASELINES, AlwaysMedian, Baseline, Ewma, Last, distribution, one_step_errors
from crosswind.models.surrogate import LEVELS


def test_always_median_is_the_median_of_all_earlier_runs() -> None:
    assert AlwaysMedian().forecast(np.array([1.0, 9.0, 2.0])) == 2


def test_last_is_the_newest_run() -> None:
    assert Last().forecast(np.array([1.0, 9.0, 2.0])) == 2
    assert Last().forecast(np.array([2.0, 9.0])) == 9


def test_ewma_weighs_the_newest_run_most() -> None:
    # From the oldest on: 1, then 1^0.5 x 4^0.5 = 2, then 2^0.5 x 8^0.5 = 4.
    assert Ewma(newest_weight=0.5).forecast(np.array([1.0, 4.0, 8.0])) == pytest.approx(4)


@pytest.mark.parametrize("baseline", BASELINES, ids=lambda baseline: baseline.name)
def test_every_baseline_forecasts_a_constant_as_itself(baseline: Baseline) -> None:
    assert baseline.forecast(np.full(7, 0.25)) == pytest.approx(0.25)


@pytest.mark.parametrize("baseline", BASELINES, ids=lambda baseline: baseline.name)
@pytest.mark.parametrize("seconds", [[], [1.0, 0.0], [1.0, math.nan], [math.inf]])
def test_every_baseline_refuses_what_is_no_time(baseline: Baseline, seconds: list[float]) -> None:
    with pytest.raises(InvalidInputError, match="expected at least one, all positive"):
        baseline.forecast(np.array(seconds))


def test_every_baseline_has_its_own_name() -> None:
    assert len({baseline.name for baseline in BASELINES}) == len(BASELINES) == 3


def test_errors_are_log_ratios_of_each_run_to_its_forecast_from_those_before() -> None:
    errors = one_step_errors(Last(), np.array([1.0, 2.0, 2.0, 1.0]))
    assert errors == pytest.approx([math.log(2), 0, -math.log(2)])


def test_distribution_spreads_the_forecast_by_its_past_errors() -> None:
    spread = distribution(10.0, np.log(np.linspace(0.9, 1.1, 39)))
    assert spread.levels == LEVELS
    assert spread.at(0.5)[0] == pytest.approx(10)
    # The 38th of 39 errors is the one for level 0.95 x 40, the 2nd the one for 0.05 x 40.
    assert spread.at(0.95)[0] == pytest.approx(10 * np.linspace(0.9, 1.1, 39)[37])
    assert spread.at(0.05)[0] == pytest.approx(10 * np.linspace(0.9, 1.1, 39)[1])


def test_one_past_error_makes_no_distribution() -> None:
    with pytest.raises(InvalidInputError, match="1 earlier forecasts"):
        distribution(10.0, np.array([0.1]))
