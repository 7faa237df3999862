import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.tuner.space.space import Space

MIXED = {
    "bucket_mb": {"kind": "float", "low": 0.5, "high": 64.0, "log": True},
    "workers": {"kind": "int", "low": 0, "high": 8, "log": False},
    "threads": {"kind": "ordinal", "values": [1, 2, 4]},
    "precision": {"kind": "categorical", "values": ["fp32", "bf16"]},
    "fused": {"kind": "boolean"},
}
FINITE = {name: MIXED[name] for name in ("threads", "precision", "fused")}
ONE = {"bucket_mb": 8.0, "workers": 3, "threads": 2, "precision": "bf16", "fused": True}


def test_json_goes_in_and_comes_out() -> None:
    assert Space.from_json(json.loads(json.dumps(MIXED))).as_json() == MIXED


def test_a_finite_space_lists_every_combination_once() -> None:
    configurations = Space.from_json(FINITE).configurations()
    assert len(configurations) == Space.from_json(FINITE).size == 3 * 2 * 2
    assert configurations[:2] == [
        {"threads": 1, "precision": "fp32", "fused": False},
        {"threads": 1, "precision": "fp32", "fused": True},
    ]
    assert len({json.dumps(configuration) for configuration in configurations}) == 12


def test_whole_numbers_in_steps_are_those_alone() -> None:
    json_form = {"ranks": {"kind": "int", "low": 8, "high": 30, "log": False, "step": 8}}
    space = Space.from_json(json_form)
    assert space.as_json() == json_form
    assert [configuration["ranks"] for configuration in space.configurations()] == [8, 16, 24]
    assert space.coordinates([{"ranks": 8}, {"ranks": 19}]).tolist() == [[0.0], [0.5]]
    with pytest.raises(InvalidInputError, match="ranks is 12, expected a whole number from 8 to 30 in steps of 8"):
        space.check({"ranks": 12})
    wide = Space.from_json({"n": {"kind": "int", "low": -5, "high": 10**9, "step": 3}, "m": json_form["ranks"]})
    drawn = [*wide.random(200, seed=0), *wide.neighbours({"n": 1, "m": 8}, 50, seed=0)]
    assert {configuration["m"] for configuration in drawn} == {8, 16, 24}
    assert all(wide.contains(configuration) for configuration in drawn)
    assert len({configuration["n"] for configuration in drawn}) > 200
    half = Space.from_json({"parameters": json_form, "constraints": ["ranks % 16 == 0"]})
    assert half.configurations() == [{"ranks": 16}]


def test_a_space_with_a_real_number_or_too_many_values_is_not_listed() -> None:
    assert Space.from_json(MIXED).size == math.inf
    big = Space.from_json({name: {"kind": "int", "low": 1, "high": 300} for name in "ab"})
    assert not big.is_enumerable
    with pytest.raises(InvalidInputError, match="the space has 90000 configurations, expected at most 50000"):
        big.configurations()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 20))
def test_random_configurations_are_distinct_and_inside(seed: int, count: int) -> None:
    space = Space.from_json(MIXED)
    drawn = space.random(count, seed)
    assert len(drawn) == len({space.key(configuration) for configuration in drawn}) == count
    assert all(space.contains(configuration) for configuration in drawn)
    points = space.coordinates(drawn)
    assert points.shape == (count, 6)
    assert np.all((points >= 0) & (points <= 1))


def test_random_runs_dry_in_a_small_space() -> None:
    assert len(Space.from_json(FINITE).random(99, seed=0)) == 12


def test_more_random_configurations_begin_with_the_fewer() -> None:
    for space in (Space.from_json(MIXED), Space.from_json(FINITE)):
        assert space.random(9, seed=5)[:4] == space.random(4, seed=5)


def test_every_factor_is_as_likely_on_a_logarithmic_scale() -> None:
    space = Space.from_json({"bucket_mb": {"kind": "float", "low": 0.01, "high": 100, "log": True}})
    below_one = [configuration["bucket_mb"] < 1 for configuration in space.random(2000, seed=0)]
    assert np.mean(below_one) == pytest.approx(0.5, abs=0.045)  # four standard errors of sqrt(0.25 / 2000)


def test_alike_values_lie_near_each_other() -> None:
    [point] = Space.from_json(MIXED).coordinates([ONE])
    # log(8 / 0.5) / log(64 / 0.5) = 4 / 7, 3 of 8 workers, the middle of three ranks, one-hot bf16, true
    assert point == pytest.approx([4 / 7, 3 / 8, 0.5, 0, 1, 1])


def test_numbers_are_the_same_however_they_are_written() -> None:
    space = Space.from_json(MIXED)
    assert space.key(ONE) == space.key({**ONE, "bucket_mb": 8, "threads": 2.0})
    assert space.key(ONE) == space.key(dict(reversed(ONE.items())))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bucket_mb": 65.0}, "parameter bucket_mb is 65.0, expected a number from 0.5 to 64.0"),
        ({"bucket_mb": math.nan}, "parameter bucket_mb is nan"),
        ({"bucket_mb": "8"}, "parameter bucket_mb is '8'"),
        ({"workers": 1.5}, "parameter workers is 1.5, expected a whole number from 0 to 8"),
        ({"workers": True}, "parameter workers is True"),
        ({"threads": 3}, "parameter threads is 3, expected one of 1, 2, 4"),
        ({"threads": True}, "parameter threads is True"),
        ({"precision": ["bf16"]}, r"parameter precision is \['bf16'\]"),
        ({"fused": 1}, "parameter fused is 1, expected true or false"),
        ({"colour": "red"}, "parameter colour is unknown, expected only bucket_mb"),
    ],
)
def test_a_configuration_from_elsewhere_is_refused(change: dict[str, object], message: str) -> None:
    space = Space.from_json(MIXED)
    assert not space.contains({**ONE, **change})  # type: ignore[dict-item]
    with pytest.raises(InvalidInputError, match=message):
        space.check({**ONE, **change})  # type: ignore[dict-item]


def test_a_missing_parameter_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="parameter fused is missing, expected true or false"):
        Space.from_json(FINITE).check({"threads": 1, "precision": "fp32"})


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ({"kind": "gaussian"}, "kind is 'gaussian', expected one of int, float, ordinal, categorical, boolean"),
        ({}, "kind is None"),
        ({"kind": ["int"]}, "kind is"),
        (7, "it is 7, expected an object"),
        ({"kind": "int", "low": 1}, "high is None, expected a finite number"),
        ({"kind": "int", "low": 1, "high": 2.5}, "high is 2.5, expected a whole number"),
        ({"kind": "int", "low": 1, "high": 10**400}, "high is 1000*, expected a finite number"),
        ({"kind": "int", "low": 1, "high": 1e200}, "expected a whole number"),
        ({"kind": "float", "low": 1, "high": math.inf}, "high is inf"),
        ({"kind": "float", "low": True, "high": 2}, "low is True"),
        ({"kind": "float", "low": 3, "high": 2}, "low is 3.0 and high is 2.0, expected low <= high"),
        ({"kind": "float", "low": 0, "high": 2, "log": True}, "low is 0.0, expected a positive number"),
        ({"kind": "float", "low": 1, "high": 2, "log": 1}, "log is 1, expected true or false"),
        ({"kind": "float", "low": 1, "high": 2, "step": 1}, "has no field 'step', expected kind, low, high, log"),
        ({"kind": "int", "low": 1, "high": 9, "step": 0}, "step is 0, expected a whole number of at least 1"),
        ({"kind": "int", "low": 1, "high": 9, "step": 1.5}, "step is 1.5, expected a whole number"),
        (
            {"kind": "int", "low": 1, "high": 9, "log": True, "step": 2},
            "step is 2, expected none on a logarithmic scale",
        ),
        ({"kind": "ordinal", "values": []}, "values is empty"),
        ({"kind": "ordinal", "values": "ab"}, "values is 'ab', expected a list"),
        ({"kind": "ordinal", "values": [1, 1.0]}, "expected no value twice"),
        ({"kind": "categorical", "values": [None]}, "values holds None"),
        ({"kind": "categorical", "values": [math.nan]}, "values holds nan"),
    ],
)
def test_an_impossible_parameter_is_refused_by_name(parameter: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^parameter x: .*{message}"):
        Space.from_json({"x": parameter})  # type: ignore[dict-item]


@pytest.mark.parametrize("value", [{}, [], "space"])
def test_what_is_no_space_is_refused(value: object) -> None:
    with pytest.raises(InvalidInputError, match="the space"):
        Space.from_json(value)  # type: ignore[arg-type]


def test_only_some_configurations_may_be_allowed() -> None:
    space = Space.from_json(MIXED).only([ONE, {**ONE, "bucket_mb": 16.0}, ONE])
    assert (space.size, space.is_enumerable) == (2, True)
    assert space.configurations()[0] == ONE
    with pytest.raises(InvalidInputError, match="parameter threads is 9"):
        Space.from_json(MIXED).only([{**ONE, "threads": 9}])


def test_neighbours_differ_in_one_parameter_at_most() -> None:
    space = Space.from_json(MIXED)
    near = space.neighbours(ONE, count=5, seed=0)
    assert all(sum(neighbour[name] != ONE[name] for name in ONE) <= 1 for neighbour in near)
    assert {name for neighbour in near for name in ONE if neighbour[name] != ONE[name]} == set(ONE)
