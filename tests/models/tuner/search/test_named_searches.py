"""Searches that people choose by name: grid, TPE and CMA-ES over conditional and constrained spaces."""

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import SEARCHES, Configuration, Study, Trial, TrialState
from crosswind.models.tuner.search.every_tuner import BY_NAME
from crosswind.models.tuner.search.grid_tuner import GridTuner
from crosswind.models.tuner.search.search import PlainSearch, search_for
from crosswind.models.tuner.search.unit_points import UnitPoints
from crosswind.models.tuner.service.rules import check_study
from crosswind.models.tuner.space.space import Space
from crosswind.models.tuner.study.searches import NEEDED

DOCUMENT = {
    "parameters": {
        "extra": {"kind": "ordinal", "values": [1, 2, 4], "when": "algo == 'tree'"},
        "algo": {"kind": "categorical", "values": ["ring", "tree"]},
        "rate": {"kind": "float", "low": 1e-5, "high": 0.1, "log": True},
        "batch": {"kind": "int", "low": 8, "high": 100, "step": 8},
        "depth": {"kind": "int", "low": 1, "high": 10**6, "log": True},
        "fused": {"kind": "boolean"},
    },
    "constraints": ["not fused or batch <= 64"],
}
SPACE = Space.from_json(DOCUMENT)
STUDY = Study("s1", "s", DOCUMENT, "loss", "", 0, 0)
LIBRARIES = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.skipif(find_spec(package) is None, reason="crosswind[optuna]"))
        for name, package in NEEDED.items()
    ],
)


def loss(configuration: Configuration) -> float:
    rate, batch = float(configuration["rate"]), float(configuration["batch"])
    of_algo = 0.2 * float(configuration.get("extra", 4))
    return float((np.log10(rate) + 3) ** 2 + ((batch - 64) / 64) ** 2 + of_algo)


@LIBRARIES
def test_a_librarys_search_keeps_to_the_space_and_learns(name: str) -> None:
    tuner = BY_NAME[name](SPACE, 0)
    losses = []
    for number in range(80):
        [configuration] = tuner.suggest(1)
        SPACE.check(configuration)
        losses.append(loss(configuration))
        state = TrialState.FAILED if number % 7 == 6 else TrialState.DONE
        objective = None if state is TrialState.FAILED else losses[-1]
        tuner.observe([Trial(configuration, state, objective, str(number))])
    by_chance = [loss(configuration) for configuration in SPACE.random(200, seed=1)]
    assert np.mean(losses[60:]) < 0.6 * np.mean(by_chance)


@LIBRARIES
def test_what_is_pending_is_not_suggested_beside_it(name: str) -> None:
    tuner = BY_NAME[name](SPACE, 0)
    [held] = tuner.suggest(1)
    tuner.observe([Trial(held, TrialState.LEASED, trial_id="1")])
    assert held not in tuner.suggest(5)


@pytest.mark.parametrize("name", sorted(NEEDED))
def test_without_the_library_it_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    message = f"search is '{name}', which needs {NEEDED[name]} where the study service runs: pip install"
    with pytest.raises(InvalidInputError, match=message):
        check_study(replace(STUDY, search=name))


def test_a_grid_has_the_ends_and_equal_steps_of_ranges() -> None:
    rates = {"rate": DOCUMENT["parameters"]["rate"], "ranks": {"kind": "ordinal", "values": [1, 2]}}  # type: ignore[index]
    grid = GridTuner(Space.from_json(rates), 0).suggest(100)
    assert len(grid) == 10
    assert sorted({float(point["rate"]) for point in grid}) == pytest.approx([1e-5, 1e-4, 1e-3, 1e-2, 1e-1])
    wide = {"n": {"kind": "int", "low": 0, "high": 10**9, "step": 3}, "m": {"kind": "int", "low": 1, "high": 2}}
    points = GridTuner(Space.from_json(wide), 0).suggest(100)
    assert {point["n"] for point in points} == {0, 249999999, 500000001, 749999999 + 1, 999999999}
    assert {point["m"] for point in points} == {1, 2}
    tried = GridTuner(SPACE, 0).suggest(5000)
    assert all(SPACE.contains(point) for point in tried)
    assert {len(point) for point in tried} == {5, 6}


def test_a_grid_that_is_too_large_is_refused() -> None:
    space = Space.from_json({name: {"kind": "float", "low": 0, "high": 1} for name in "abcdefg"})
    with pytest.raises(InvalidInputError, match="the grid has 78125 configurations, expected at most 50000"):
        GridTuner(space, 0).suggest(1)


def test_a_point_of_the_unit_cube_is_its_configuration() -> None:
    points = UnitPoints(SPACE)
    assert points.order.index("algo") < points.order.index("extra")
    for configuration in SPACE.random(50, seed=0):
        again = points.configuration(points.point(configuration))
        assert again["rate"] == pytest.approx(configuration["rate"])
        assert {**again, "rate": 0.0} == {**configuration, "rate": 0.0}
    for corner in (np.zeros(6), np.ones(6)):
        values = points.configuration(corner)
        assert all(SPACE.domains[name].contains(value) for name, value in values.items())


@pytest.mark.parametrize("name", [name for name in SEARCHES if name not in NEEDED])
def test_a_study_gets_the_search_that_it_names(name: str) -> None:
    search = search_for(replace(STUDY, search=name))
    assert isinstance(search, PlainSearch)
    assert isinstance(search.tuner, BY_NAME[name])
    assert len(search.suggest(1)) == 1


def test_an_unknown_search_and_one_beside_limits_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="search is 'sgd', expected portfolio or gp or tpe"):
        replace(STUDY, search="sgd")
    with pytest.raises(InvalidInputError, match="search is 'gp', expected none beside limits"):
        check_study(replace(STUDY, search="gp", limits=("power_watts <= 3",)))
