import math

import numpy as np
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.forecast.change_points import Regime, change_points, segments


def series(*levels_and_counts: tuple[float, int], noise: float = 0.05, seed: int = 0) -> np.ndarray:
    levels = np.concatenate([np.full(count, level) for level, count in levels_and_counts])
    return levels * np.exp(np.random.default_rng(seed).normal(0, noise, len(levels)))


def test_a_series_of_one_value_is_one_segment() -> None:
    [only] = segments(np.array([2.0]))
    assert (only.first, only.end, only.level) == (0, 1, 2.0)


def test_a_constant_series_never_changes() -> None:
    assert change_points(np.full(500, 0.25)) == []


def test_noise_alone_is_seldom_a_change() -> None:
    # 40 series of 200 values: at the default penalty at most two of them (5 %) may show a change.
    assert sum(bool(change_points(series((1.0, 200), noise=0.2, seed=seed))) for seed in range(40)) <= 2


def test_changes_are_found_where_they_were_made() -> None:
    # Steps of 8 deviations and more: the place is exact up to one value.
    pieces = segments(series((1.0, 40), (1.5, 30), (0.9, 50)))
    assert [segment.first for segment in pieces] == pytest.approx([0, 40, 70], abs=1)
    assert [segment.level for segment in pieces] == pytest.approx([1.0, 1.5, 0.9], rel=0.03)  # 3 se of a median of 30


def test_single_slow_steps_are_no_change() -> None:
    values = series((1.0, 100))
    values[19::20] = 30.0
    assert change_points(values) == []


def test_the_unit_does_not_matter() -> None:
    values = series((1.0, 40), (1.4, 40))
    assert change_points(values * 1e6) == change_points(values)


def test_a_long_history_is_cut_exactly_though_looked_at_in_blocks() -> None:
    # 100 000 values are 20 000 blocks of five; at 8 deviations a change is placed to within two values.
    changes = change_points(series((1.0, 40_003), (1.5, 30_001), (1.0, 29_996)))
    assert changes == pytest.approx([40_003, 70_004], abs=2)


@pytest.mark.parametrize("values", [[], [1.0, 0.0], [1.0, math.nan], [[1.0]]])
def test_what_is_no_series_is_refused(values: list[float]) -> None:
    with pytest.raises(InvalidInputError, match="expected at least one value, all positive"):
        segments(np.array(values))


def test_the_regime_follows_a_change_within_a_few_values() -> None:
    regime = Regime()
    shown = [index for index, value in enumerate(np.log(series((1.0, 50), (1.5, 30)))) if regime.observe(value)]
    # A change of 8 deviations is capped at 3, so each value adds 2.3: the fourth exceeds the threshold of 8.
    assert shown
    assert shown[0] >= 50
    assert shown[-1] <= 54
    assert regime.changed_at == pytest.approx(50, abs=1)
    assert math.exp(regime.level) == pytest.approx(1.5, rel=0.03)  # 3 standard errors of a mean of 30


def test_the_regime_stays_through_single_slow_steps() -> None:
    values = series((1.0, 200))
    values[19::20] = 30.0
    regime = Regime()
    assert not any(regime.observe(value) for value in np.log(values))


def test_the_regime_seldom_changes_by_noise_alone() -> None:
    # 40 series of 60 values: a threshold of 8 deviations of neighbours is passed in at most two (5 %).
    changed = 0
    for seed in range(40):
        regime = Regime()
        changed += any(regime.observe(value) for value in np.log(series((1.0, 60), noise=0.2, seed=seed)))
    assert changed <= 2


def test_the_regime_refuses_what_is_no_number() -> None:
    with pytest.raises(InvalidInputError, match="value 0 of the series"):
        Regime().observe(math.nan)
