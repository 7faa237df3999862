"""Promises of every tuner."""

from importlib.util import find_spec

import numpy as np
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration, Trial, TrialState
from crosswind.models.tuner.search.every_tuner import TUNERS
from crosswind.models.tuner.search.tuner import Tuner
from crosswind.models.tuner.space.space import Space
from crosswind.models.tuner.study.searches import NEEDED

FINITE = Space.from_json(
    {
        "batch": {"kind": "ordinal", "values": [1, 2, 4, 8]},
        "precision": {"kind": "categorical", "values": ["fp32", "bf16"]},
        "fused": {"kind": "boolean"},
    }
)
ENDLESS = Space.from_json(
    {
        "bucket_mb": {"kind": "float", "low": 0.1, "high": 100, "log": True},
        "workers": {"kind": "int", "low": 0, "high": 64},
        "fused": {"kind": "boolean"},
    }
)
EVERY = pytest.mark.parametrize(
    "make",
    [
        pytest.param(
            tuner,
            id=tuner.name,
            marks=pytest.mark.skipif(
                tuner.name in NEEDED and find_spec(NEEDED[tuner.name]) is None, reason="crosswind[optuna] not installed"
            ),
        )
        for tuner in TUNERS
    ],
)
SPACES = pytest.mark.parametrize("space", [FINITE, ENDLESS], ids=["finite", "endless"])
MakeTuner = type[Tuner]


def seconds(configuration: Configuration) -> float:
    """Something smooth to minimise."""
    return 1 + sum(float(value) if isinstance(value, int | float) else len(value) for value in configuration.values())


def done(configuration: Configuration, trial_id: str = "") -> Trial:
    return Trial(configuration, TrialState.DONE, seconds(configuration), trial_id)


def experienced(make: MakeTuner, space: Space, seed: int = 0) -> Tuner:
    """A tuner past its start that also saw a failure."""
    tuner = make(space, seed)  # type: ignore[call-arg]
    tuner.observe([done(configuration) for configuration in tuner.suggest(8)])
    tuner.observe([Trial(tuner.suggest(1)[0], TrialState.FAILED)])
    return tuner


@EVERY
@SPACES
def test_suggestions_are_distinct_and_inside(make: MakeTuner, space: Space) -> None:
    for tuner in (make(space, 0), experienced(make, space)):  # type: ignore[call-arg]
        suggestions = tuner.suggest(7)
        assert len({space.key(configuration) for configuration in suggestions}) == 7


@EVERY
@SPACES
def test_suggesting_twice_without_news_gives_the_same(make: MakeTuner, space: Space) -> None:
    for tuner in (make(space, 0), experienced(make, space)):  # type: ignore[call-arg]
        assert tuner.suggest(3) == tuner.suggest(3)


@EVERY
@SPACES
def test_equal_seeds_and_knowledge_give_equal_suggestions(make: MakeTuner, space: Space) -> None:
    assert experienced(make, space, 4).suggest(3) == experienced(make, space, 4).suggest(3)


@EVERY
@SPACES
def test_other_seeds_start_elsewhere(make: MakeTuner, space: Space) -> None:
    starts = [make(space, seed).suggest(4) for seed in range(5)]  # type: ignore[call-arg]
    assert any(start != starts[0] for start in starts)


@EVERY
@pytest.mark.parametrize("state", [state for state in TrialState if state not in ("released", "done")])
def test_nothing_taken_is_suggested_again(make: MakeTuner, state: TrialState) -> None:
    tuner = experienced(make, FINITE)
    [held] = tuner.suggest(1)
    tuner.observe([Trial(held, state)])
    assert held not in tuner.suggest(99)


@EVERY
def test_a_place_where_trials_are_pruned_is_left(make: MakeTuner) -> None:
    tuner, pruned = experienced(make, ENDLESS), []
    for _ in range(8):
        pruned += tuner.suggest(1)
        tuner.observe([Trial(pruned[-1], TrialState.PRUNED)])
    points = ENDLESS.coordinates(pruned)
    gaps = np.abs(points[:, None] - points[None]).max(axis=2)[np.triu_indices(len(points), 1)]
    assert np.median(gaps) > 0.05


@EVERY
def test_a_released_trial_may_come_back(make: MakeTuner) -> None:
    tuner = experienced(make, FINITE)
    [held] = tuner.suggest(1)
    tuner.observe([Trial(held, TrialState.LEASED, trial_id="1")])
    tuner.observe([Trial(held, TrialState.RELEASED, trial_id="1")])
    assert held in tuner.suggest(99)


@EVERY
def test_a_finite_space_is_tried_exactly_once_and_then_nothing_is_left(make: MakeTuner) -> None:
    tuner = make(FINITE, 0)  # type: ignore[call-arg]
    tried = []
    while batch := tuner.suggest(3):
        tried += [FINITE.key(configuration) for configuration in batch]
        tuner.observe([done(configuration) for configuration in batch])
    assert sorted(tried) == sorted(map(FINITE.key, FINITE.configurations()))


@EVERY
def test_it_goes_on_when_everything_fails(make: MakeTuner) -> None:
    tuner = make(FINITE, 0)  # type: ignore[call-arg]
    for _ in range(FINITE.configurations().__len__()):
        [configuration] = tuner.suggest(1)
        tuner.observe([Trial(configuration, TrialState.INFEASIBLE)])
    assert tuner.suggest(1) == []


@EVERY
@pytest.mark.parametrize("objective", [0.0, -5.0, 1e-12, 1e12])
def test_any_finite_objective_will_do_even_if_all_are_equal(make: MakeTuner, objective: float) -> None:
    tuner = make(ENDLESS, 0)  # type: ignore[call-arg]
    for _ in range(10):
        tuner.observe([Trial(configuration, TrialState.DONE, objective) for configuration in tuner.suggest(1)])
    assert len(tuner.suggest(2)) == 2


@EVERY
@pytest.mark.parametrize("objective", [None, np.nan, np.inf])
def test_done_without_a_number_is_refused_and_nothing_is_learned(make: MakeTuner, objective: float | None) -> None:
    tuner = make(FINITE, 0)  # type: ignore[call-arg]
    before = tuner.suggest(2)
    with pytest.raises(InvalidInputError, match="expected a finite number"):
        tuner.observe([done(before[0]), Trial(before[1], TrialState.DONE, objective)])
    assert tuner.suggest(2) == before


@EVERY
def test_a_trial_from_another_space_is_refused(make: MakeTuner) -> None:
    with pytest.raises(InvalidInputError, match="parameter batch is 3, expected one of 1, 2, 4, 8"):
        make(FINITE, 0).observe([done({"batch": 3, "precision": "fp32", "fused": True})])  # type: ignore[call-arg]


@EVERY
@pytest.mark.parametrize("count", [0, -1])
def test_a_request_for_no_suggestions_is_refused(make: MakeTuner, count: int) -> None:
    with pytest.raises(InvalidInputError, match=f"count is {count}, expected at least 1"):
        make(FINITE, 0).suggest(count)  # type: ignore[call-arg]


@EVERY
def test_every_tuner_has_its_own_name(make: MakeTuner) -> None:
    assert [tuner.name for tuner in TUNERS].count(make.name) == 1
