"""The end of a search that stops by itself: when the next trial is expected to gain less than the noise."""

from dataclasses import replace

import numpy as np
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration, Study, Trial, TrialRecord, TrialState
from crosswind.models.tuner.search.enough import Prospect, measured_min, prospect_of
from crosswind.models.tuner.search.random_tuner import RandomTuner
from crosswind.models.tuner.search.search import search_for
from crosswind.models.tuner.service.rules import check_study, status_of
from crosswind.models.tuner.space.space import Space

SPACE = {"x": {"kind": "int", "low": 0, "high": 40}, "y": {"kind": "int", "low": 0, "high": 40}}
STUDY = Study("s1", "s", SPACE, "loss", "s", 0, 0, trials_max=100, stop="auto")


def bowl(configuration: Configuration) -> float:
    return 1 + ((float(configuration["x"]) - 20) / 20) ** 2 + ((float(configuration["y"]) - 20) / 20) ** 2


def measured(configurations: list[Configuration], noise: float, sign: int = 1) -> list[TrialRecord]:
    rng = np.random.default_rng(0)
    objectives = [sign * bowl(values) * float(np.exp(noise * rng.standard_normal())) for values in configurations]
    return [
        TrialRecord(Trial(values, TrialState.DONE, objective, f"{place:03d}"), "s1")
        for place, (values, objective) in enumerate(zip(configurations, objectives, strict=True))
    ]


def drawn(count: int) -> list[Configuration]:
    return RandomTuner(Space.from_json(SPACE), 0).suggest(count)


def test_a_search_ends_once_the_next_trial_gains_less_than_the_noise() -> None:
    search, records = search_for(STUDY), list[TrialRecord]()
    while suggestions := search.suggest(1):
        records = measured([*(record.trial.configuration for record in records), *suggestions], 0.02)
        search.observe(records[-1:])
        assert len(records) < 60
    assert len(records) >= measured_min(2)
    assert min(bowl(record.trial.configuration) for record in records) < 1.03
    status = status_of(STUDY, records, lambda: 0)
    assert status.enough.startswith("the next trial is expected to gain ")
    assert "less than the noise of " in status.enough
    assert status.is_exhausted
    assert not status_of(replace(STUDY, stop=None), records, lambda: 0).is_exhausted


def test_a_search_that_has_much_to_gain_goes_on() -> None:
    corner = [{"x": x, "y": y} for x in range(35, 41) for y in range(35, 41)]  # falls towards the middle
    prospect = prospect_of(STUDY, measured(corner, 0.005))
    assert prospect is not None
    assert prospect.gain > 3 * prospect.noise
    assert not prospect.is_enough


def test_few_trials_say_nothing_and_neither_does_a_space_that_is_used_up() -> None:
    assert prospect_of(STUDY, []) is None
    assert prospect_of(STUDY, measured(drawn(measured_min(2) - 1), 0.02)) is None
    small = {"x": {"kind": "int", "low": 0, "high": 40}}
    everything = [{"x": x, "y": 20} for x in range(41)]
    records = [
        replace(record, trial=replace(record.trial, configuration={"x": values["x"]}))
        for record, values in zip(measured(everything, 0.02), everything, strict=True)
    ]
    assert prospect_of(replace(STUDY, space=small), records) is None


def test_a_study_that_its_runs_define_ends_too() -> None:
    grows = replace(STUDY, define_by_run=True, space={"parameters": {}})
    assert status_of(grows, [], lambda: 0).enough == ""
    records = [
        replace(record, trial=replace(record.trial, configuration={"x": record.trial.configuration["x"]}))
        if place % 2
        else record
        for place, record in enumerate(measured(drawn(40), 0.3))
    ]
    assert status_of(replace(grows, space={"parameters": SPACE}), records, lambda: 0).enough


def test_the_noise_is_told_in_shares_of_the_best_even_where_objectives_are_negative() -> None:
    prospect = prospect_of(STUDY, measured(drawn(60), 0.05, sign=-1))
    assert prospect is not None
    assert 0.01 < prospect.noise < 0.2


def test_it_is_said_in_percent() -> None:
    sentence = Prospect(0.003, 0.02).sentence
    assert sentence == "the next trial is expected to gain 0.3 %, less than the noise of 2 %"
    assert "to gain under 0.1 %, less than the noise of 2 %" in Prospect(1.6e-7, 0.02).sentence


def test_stop_is_auto_and_for_one_objective_without_limits() -> None:
    with pytest.raises(InvalidInputError, match="stop is 'soon', expected auto"):
        replace(STUDY, stop="soon")
    with pytest.raises(InvalidInputError, match="stop is 'auto', expected none beside limits"):
        check_study(replace(STUDY, limits=("power_watts <= 3",)))
