"""Repeats of configurations, and the noise between them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.tuner.search.noise import Noise, relative_variances
from crosswind.models.tuner.search.repeats import Repeats
from crosswind.models.tuner.space.space import Space

SPACE = Space.from_json({"workers": {"kind": "int", "low": 0, "high": 19}})


def measured(noise: float, repeats: int, *, shift: float = 0.0) -> Repeats:
    rng = np.random.default_rng(0)
    workers = [{"workers": index} for index in range(20) for _ in range(repeats)]
    times = [
        (1 + 0.01 * (configuration["workers"] - 8) ** 2) * np.exp(noise * rng.standard_normal())
        for configuration in workers
    ]
    return Repeats.of(SPACE, workers, [seconds - shift for seconds in times])


def test_measurements_of_one_configuration_stand_together() -> None:
    repeats = Repeats.of(SPACE, [{"workers": 3}, {"workers": 1}, {"workers": 3}], [5.0, 4.0, 7.0])
    assert repeats.configurations == ({"workers": 3}, {"workers": 1})
    assert [values.tolist() for values in repeats.values] == [[5.0, 7.0], [4.0]]
    assert (len(repeats), repeats.n_measurements, repeats.n_repeats) == (2, 3, 1)


def test_the_best_are_those_of_the_smallest_mean() -> None:
    repeats = Repeats.of(SPACE, [{"workers": count} for count in (1, 2, 3, 2)], [5.0, 4.0, 3.0, 2.0])
    assert repeats.best(2).configurations == ({"workers": 2}, {"workers": 3})
    assert [values.tolist() for values in repeats.best(2).values] == [[4.0, 2.0], [3.0]]


@given(st.lists(st.tuples(st.integers(0, 19), st.floats(0.1, 10)), min_size=1, max_size=30))
def test_no_measurement_is_lost(rows: list[tuple[int, float]]) -> None:
    repeats = Repeats.of(SPACE, [{"workers": count} for count, _ in rows], [value for _, value in rows])
    assert sorted(np.concatenate(repeats.values)) == sorted(value for _, value in rows)
    assert len(repeats) == len({count for count, _ in rows})


@pytest.mark.parametrize("objective", [float("nan"), float("inf")])
def test_an_objective_that_is_none_is_refused(objective: float) -> None:
    with pytest.raises(InvalidInputError, match=f"'workers': 3.* is {objective}, expected a finite number"):
        Repeats.of(SPACE, [{"workers": 3}], [objective])


@pytest.mark.parametrize("noise", [0.02, 0.1, 0.3])
def test_noise_is_relative_where_objectives_are_positive(noise: float) -> None:
    estimate = Noise.of(measured(noise, 3))
    assert estimate.is_relative
    assert estimate.deviation == pytest.approx(noise, rel=0.25)  # 40 degrees of freedom: standard error 11 %
    assert np.all(estimate.deviations == estimate.deviation)


def test_noise_is_in_the_objective_s_unit_elsewhere() -> None:
    estimate = Noise.of(measured(0.1, 3, shift=1.5))
    assert not estimate.is_relative
    assert 0.1 < estimate.deviation < 0.25  # a tenth of 1 to 2.2 seconds


def test_without_repeats_the_misfit_tells_the_noise_less_surely() -> None:
    alone, thrice = Noise.of(measured(0.1, 1)), Noise.of(measured(0.1, 3))
    assert 0.04 < alone.deviation < 0.16
    assert alone.degrees < thrice.degrees


def test_one_measurement_leaves_the_expected_noise() -> None:
    estimate = Noise.of(Repeats.of(SPACE, [{"workers": 3}], [2.0]))
    assert estimate.deviation == pytest.approx(0.05, rel=0.2)


def test_equal_variances_stay_equal() -> None:
    rng = np.random.default_rng(0)
    groups = [0.1 * rng.standard_normal(6) for _ in range(5)]
    assert np.all(relative_variances(groups) == 1)


def test_a_configuration_that_scatters_more_gets_its_own_variance() -> None:
    rng = np.random.default_rng(0)
    groups: list[Floats] = [0.02 * rng.standard_normal(8) for _ in range(4)]
    variances = relative_variances([*groups, 0.4 * rng.standard_normal(8), np.array([3.0])])
    assert variances[4] > 5 * variances[:4].max()
    assert variances[5] == 1  # never repeated: the common one


def test_repeats_without_any_scatter_are_no_evidence() -> None:
    assert np.all(relative_variances([np.ones(3), np.ones(4), np.array([1.0, 1.1])]) == 1)
