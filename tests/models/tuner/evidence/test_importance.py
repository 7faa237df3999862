"""Importances of parameters against functions whose variance is known."""

import numpy as np
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.tuner.evidence.importance import Effects
from crosswind.models.tuner.space.space import Space

UNIT = {"kind": "float", "low": 0.0, "high": 1.0}
SPACE = Space.from_json({"a": UNIT, "b": UNIT, "c": {"kind": "categorical", "values": ["x", "y", "z"]}, "d": UNIT})


def effects(values: dict[str, float], count: int = 80, seed: int = 0) -> Effects:
    """Of a sum whose terms are these multiples of a and b, and of c being x; with values of both signs."""
    configurations = SPACE.random(count, seed)
    objectives = [
        values["a"] * float(one["a"]) + values["b"] * float(one["b"]) + values["c"] * (one["c"] == "x") - 0.5
        for one in configurations
    ]
    return Effects.of(SPACE, configurations, objectives, seed=seed)


def test_shares_are_those_of_the_variance() -> None:
    """Of 2a + b + x, the variances are 4/12, 1/12 and 2/9: 52, 13 and 35 %. Five studies of eighty trials each."""
    shares = [effects({"a": 2.0, "b": 1.0, "c": 1.0}, seed=seed).importances() for seed in range(5)]
    mean = {name: np.mean([share[name] for share in shares]) for name in SPACE.domains}
    assert mean["a"] == pytest.approx(0.52, abs=0.1)
    assert mean["b"] == pytest.approx(0.13, abs=0.08)
    assert mean["c"] == pytest.approx(0.35, abs=0.1)
    assert mean["d"] < 0.03


def test_the_largest_comes_first_and_a_constant_explains_nothing() -> None:
    assert next(iter(effects({"a": 0.0, "b": 1.0, "c": 0.1}).importances())) == "b"
    flat = Effects.of(SPACE, SPACE.random(10, 0), [1.0] * 10)
    assert set(flat.importances().values()) == {0.0}


@pytest.mark.parametrize("seed", range(3))
def test_a_parameter_beside_a_constant_explains_everything(seed: int) -> None:
    space = Space.from_json({"a": UNIT, "c": {"kind": "ordinal", "values": [5]}})
    configurations = space.random(10, seed)
    shares = Effects.of(space, configurations, [float(one["a"]) for one in configurations], seed=seed).importances()
    assert shares["a"] == pytest.approx(1.0, abs=0.05)
    assert shares["a"] <= 1.0
    assert shares["c"] == 0.0


def test_a_surface_averages_over_the_other_parameters() -> None:
    pairs = [{"a": a, "b": b} for a in (0.1, 0.9) for b in (0.1, 0.9)]
    low, middle, other, high = effects({"a": 1.0, "b": 1.0, "c": 0.0}).surface("a", "b", pairs)
    assert low < min(middle, other) <= max(middle, other) < high
    assert high - low == pytest.approx(1.6, abs=0.5)


def test_too_few_trials_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="there are 7 trials with a value, expected 8 or more"):
        Effects.of(SPACE, SPACE.random(7, 0), [1.0] * 7)
