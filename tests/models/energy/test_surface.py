"""Logarithms between points where they were measured, and power between configurations."""

from itertools import product

import numpy as np
import pytest

from crosswind.data.schema.answers.energy import MeterScope
from crosswind.data.schema.carbon import Energy, Origin
from crosswind.models.energy.measured import Measured
from crosswind.models.energy.metered import MeteredRun
from crosswind.models.energy.power_limit import limit_name
from crosswind.models.energy.power_surface import power_between
from crosswind.models.energy.surface import Surface

GRID = np.log(list(product((1.0, 2.0, 4.0, 8.0), (10.0, 20.0, 40.0))))


def test_a_law_of_powers_holds_between_and_beyond_the_points() -> None:
    surface = Surface(GRID, 3 + GRID @ np.array([1.0, -0.5]))
    asked = np.log([[3.0, 30.0], [16.0, 80.0]])
    assert surface.logs(asked) == pytest.approx(3 + asked @ np.array([1.0, -0.5]), abs=0.02)


def test_measured_points_are_kept_though_no_law_explains_them() -> None:
    values = np.sin(5 * np.arange(len(GRID)))
    assert Surface(GRID, values).logs(GRID) == pytest.approx(values, abs=1e-6)


def test_one_number_is_interpolated_and_keeps_its_last_value() -> None:
    surface = Surface(np.array([[1.0], [0.0]]), np.array([5.0, 3.0]))
    assert surface.logs(np.array([[0.5], [2.0], [-1.0]])) == pytest.approx([4.0, 5.0, 3.0])


def metered(batch: int, limit: int) -> MeteredRun:
    watts = min(100.0 + 20 * np.log2(batch), limit)
    measured = Measured(Energy(watts * 60, Origin.MEASURED), MeterScope.RECORDED, "record", 1.0, 1, 60.0)
    numbers = {"batch": float(batch), "power_limit": float(limit)}
    return MeteredRun(str(numbers), "bert", "lab", 1.0, measured, "", numbers)


RUNS = [metered(batch, limit) for batch in (8, 16, 32, 64) for limit in (100, 140, 180, 260)]


def test_power_between_configurations_is_capped_by_the_limit_as_theirs_was() -> None:
    low, high = (power_between(RUNS, {"batch": 48.0, "power_limit": limit}, 1) for limit in (110.0, 250.0))
    assert low is not None
    assert high is not None
    assert low[0] == pytest.approx(110, rel=0.1)
    assert high[0] == pytest.approx(212, rel=0.1)
    assert 0.02 < low[1] < 0.15


def test_few_configurations_or_far_ones_do_not_tell_the_power() -> None:
    assert power_between(RUNS[:7], {"batch": 8.0, "power_limit": 180.0}, 1) is None
    assert power_between(RUNS, {"batch": 1024.0, "power_limit": 180.0}, 1) is None
    assert power_between(RUNS, {}, 1) is None


@pytest.mark.parametrize(
    ("names", "limit"),
    [
        (("batch", "power_limit"), "power_limit"),
        (("GPU-Power-Limit",), "GPU-Power-Limit"),
        (("power",), None),
        (("power_limit", "power_cap"), None),
    ],
)
def test_a_parameter_is_a_power_limit_by_its_name(names: tuple[str, ...], limit: str | None) -> None:
    assert limit_name(names) == limit
