import math

import numpy as np
import pytest

from crosswind.data.schema.checks import QUANTITIES
from crosswind.models.preflight.usual import LEAST_SPREAD, Z_SLOW, usual


def test_every_quantity_has_a_least_spread() -> None:
    assert LEAST_SPREAD.keys() == QUANTITIES.keys()


def test_a_value_below_is_worse_where_more_is_better_and_better_where_less_is() -> None:
    assert usual("gemm", [100.0] * 5).z("gemm", 90.0) == pytest.approx(math.log(0.9) / (0.03 * 1.8))
    assert usual("loop", [1.0] * 5).z("loop", 0.9) == pytest.approx(-math.log(0.9) / (0.03 * 1.8))


def test_alike_values_are_never_taken_for_closer_than_the_least_spread() -> None:
    expected = usual("disk_write", [1e9, 1e9, 1e9, 1e9, 1.0001e9])
    assert expected.spread == pytest.approx(0.25 * 1.8)
    assert expected.z("disk_write", 0.4e9) > -Z_SLOW


def test_one_value_gone_wrong_moves_neither_centre_nor_spread_far() -> None:
    sound = usual("memory", [100.0, 101.0, 102.0, 103.0, 104.0])
    spoiled = usual("memory", [1.0, 101.0, 102.0, 103.0, 104.0])
    assert spoiled.value == sound.value
    assert spoiled.spread < 0.1


def test_the_spread_is_that_of_the_logarithm() -> None:
    """1000 values of spread 0.4: a robust spread misses by 4 % (three times its standard error is 11 %)."""
    values = np.exp(np.random.default_rng(3).normal(10.0, 0.4, 1000))
    assert usual("gemm", list(values)).spread == pytest.approx(0.4, rel=0.11)


@pytest.mark.parametrize(("count", "most"), [(3, 0.004), (5, 0.002), (10, 0.001), (50, 0.0005)])
def test_sound_nodes_are_seldom_taken_for_slow(count: int, most: float) -> None:
    """Of 20 000 sound nodes that differ by twice the least spread, compared with a few others like them."""
    random = np.random.default_rng(count)
    spread = 2 * LEAST_SPREAD["gemm"]
    logs = random.normal(0.0, spread, (20_000, count + 1))
    alarms = [usual("gemm", np.exp(row[1:]).tolist()).z("gemm", math.exp(row[0])) <= -Z_SLOW for row in logs]
    assert np.mean(alarms) <= most
