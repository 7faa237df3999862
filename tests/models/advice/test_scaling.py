import math

import numpy as np
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Prediction
from crosswind.data.schema.question import Price
from crosswind.models.advice.scaling import scaling_curve, within

COUNTS = (1, 2, 4, 8)
MEDIANS = (3600.0, 1800.0, 1200.0, 1200.0)


def predicted(medians: tuple[float, ...] = MEDIANS) -> Prediction:
    """A band of 10 % around each median."""
    return Prediction((0.05, 0.5, 0.95), np.array([[0.9 * median, median, 1.1 * median] for median in medians]))


def test_speedup_and_efficiency_compare_with_the_fewest_nodes() -> None:
    points = scaling_curve(COUNTS, predicted(), Price()).points
    assert [point.speedup for point in points] == pytest.approx([1, 2, 3, 3])
    assert [point.efficiency for point in points] == pytest.approx([1, 1, 0.75, 0.375])
    assert [point.node_hours for point in points] == pytest.approx([1, 1, 4 / 3, 8 / 3])
    assert points[1].low_seconds == pytest.approx(1620)
    assert points[1].high_seconds == pytest.approx(1980)


def test_the_knee_is_where_efficiency_over_time_is_best() -> None:
    curve = scaling_curve(COUNTS, predicted(), Price())
    assert (curve.knee, curve.cheapest, curve.fastest) == (4, 1, 4)  # 0.75 / 1200 s beats 1 / 1800 s


def test_price_follows_from_node_hours() -> None:
    price = Price(node_watts=500, per_node_hour=2.0, carbon_grams_per_kilowatt_hour=300)
    point = scaling_curve((4,), predicted((1800.0,)), price).points[0]
    assert point.joules == pytest.approx(3.6e6)
    assert point.cost == pytest.approx(4.0)
    assert point.carbon_grams == pytest.approx(300)


def test_what_nobody_priced_is_unknown() -> None:
    point = scaling_curve((4,), predicted((1800.0,)), Price(carbon_grams_per_kilowatt_hour=300)).points[0]
    assert (point.joules, point.cost, point.carbon_grams) == (None, None, None)


def test_the_fewest_node_hours_that_keep_a_deadline_are_advised() -> None:
    curve = scaling_curve(COUNTS, predicted(), Price())
    assert within(curve, 5000) == 1
    assert within(curve, 2000) == 2  # 1980 s at worst
    assert within(curve, 1900) == 4
    assert within(curve, 1000) is None


@pytest.mark.parametrize("counts", [(), (0, 1, 2, 4), (1, 2, 2, 4), (4, 2, 1, 8)])
def test_numbers_of_nodes_that_do_not_rise_are_refused(counts: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInputError, match="expected some, rising"):
        scaling_curve(counts, predicted(), Price())


@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan])
def test_an_impossible_price_is_refused(value: float) -> None:
    with pytest.raises(InvalidInputError, match="per_node_hour"):
        Price(per_node_hour=value)
