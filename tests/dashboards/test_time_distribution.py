import numpy as np
import pytest

from crosswind.dashboards.figures.forecasts.distribution import ENDS, stacked, time_distribution
from crosswind.data.schema.answers.predictions import Quantile

SIDES = {0.05: 58.0, 0.25: 60.0, 0.5: 61.0, 0.75: 63.0, 0.9: 70.0, 0.95: 80.0}
QUANTILES = [Quantile(level, seconds) for level, seconds in SIDES.items()]


def test_as_many_of_the_dots_lie_within_each_quantile_as_its_level_says() -> None:
    ends = np.array(time_distribution(QUANTILES, None).ends)
    assert len(ends) == ENDS
    for level, seconds in SIDES.items():
        assert np.mean(ends <= seconds) == pytest.approx(level, abs=0.5 / ENDS)


def test_dots_stand_above_each_other_where_ends_are_likely() -> None:
    ends = time_distribution(QUANTILES, None).ends
    dots = stacked(ends, 2.0)
    assert all(abs(dot.column_seconds - dot.seconds) <= 1 for dot in dots)
    assert len({(dot.column_seconds, dot.height) for dot in dots}) == ENDS
    assert max(dots, key=lambda dot: dot.height).seconds == pytest.approx(61, abs=2)


def test_ends_beyond_the_limit_look_different_and_are_counted() -> None:
    chart = time_distribution(QUANTILES, 70.0)
    within, beyond = chart.draw().traces[:2]
    assert (len(within["x"]), len(beyond["x"])) == (18, 2)
    assert within["marker"]["symbol"] != beyond["marker"]["symbol"]
    assert chart.sentence.endswith("longer than the limit, 70.0 s: 2 of 20.")


def test_a_certain_time_is_one_column() -> None:
    chart = time_distribution([Quantile(level, 60.0) for level in SIDES], None)
    within, _ = chart.draw().traces[:2]
    assert set(within["y"]) == set(range(1, ENDS + 1))
