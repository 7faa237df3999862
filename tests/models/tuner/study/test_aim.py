"""Aims of studies: limits, several objectives, hours; and which trials are best then."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import HOUR_NS, Study, Trial, TrialRecord, TrialState
from crosswind.models.tuner.search.search import search_for
from crosswind.models.tuner.study.aim import Aim

SPACE = {"clock": {"kind": "int", "low": 0, "high": 30}, "batch": {"kind": "ordinal", "values": [1, 2, 4]}}
STUDY = Study("s1", "s", SPACE, "step_seconds", "s", 0, 1_000)
CAPPED = replace(STUDY, limits=("power_watts <= 300",))
BOTH = replace(STUDY, objectives=("step_seconds", "maximise samples"))


def done(number: int, objective: float, outcomes: Mapping[str, float]) -> TrialRecord:
    trial = Trial({"clock": number, "batch": 1}, TrialState.DONE, objective, f"t{number}")
    return TrialRecord(trial, "s1", outcomes=outcomes)


def test_a_trial_beyond_a_limit_is_not_best_nor_is_one_without_the_outcome() -> None:
    records = [done(0, 1.0, {"power_watts": 301}), done(1, 0.5, {}), done(2, 3.0, {"power_watts": 300})]
    ranked = Aim.of(CAPPED).ranked([*records, done(3, 3.0, {"power_watts": 1})])
    assert (ranked.front, ranked.outside, ranked.unjudged) == ((records[2],), 1, 1)


def test_a_limit_may_bind_the_objective_itself_as_its_readers_see_it() -> None:
    study = replace(STUDY, direction="maximise", limits=("step_seconds <= 5",))
    ranked = Aim.of(study).ranked([done(0, -7.0, {}), done(1, -4.0, {}), done(2, -2.0, {})])
    assert ([record.trial.trial_id for record in ranked.front], ranked.outside) == (["t1"], 1)


def test_the_front_of_several_objectives_is_sorted_by_the_first() -> None:
    outcomes = {0: (3.0, 9.0), 1: (1.0, 5.0), 2: (2.0, 4.0), 3: (2.0, 7.0), 4: (1.0, 5.0)}
    records = [done(number, seconds, {"samples": samples}) for number, (seconds, samples) in outcomes.items()]
    ranked = Aim.of(BOTH).ranked([*records, done(5, 0.1, {})])
    assert [record.trial.trial_id for record in ranked.front] == ["t1", "t3", "t0"]
    assert ranked.unjudged == 1


def test_hours_run_from_the_creation() -> None:
    study = replace(STUDY, hours=0.5)
    assert study.ends_ns == 1_000 + HOUR_NS // 2
    assert [study.is_over(now) for now in (study.ends_ns - 1, study.ends_ns)] == [False, True]
    assert not STUDY.is_over(2**62)


@pytest.mark.parametrize(
    ("details", "says"),
    [
        ({"hours": 0}, "hours is 0, expected a number above 0"),
        ({"hours": 1e9}, "hours is 1000000000.0, expected"),
        ({"hours": "8"}, "hours is '8', expected"),
        ({"hours": True}, "hours is True, expected"),
        ({"repeats": 0.9}, "repeats is 0.9, expected a number above 0 up to 0.5"),
        ({"repeats": 0.2, "limits": ["power_watts < 3"]}, "repeats is 0.2, expected none beside limits"),
        ({"limits": "power <= 3"}, "limits is 'power <= 3', expected a list of texts"),
        ({"limits": [3]}, "limits is .*, expected a list of texts"),
        ({"limits": ["power"]}, "limit 'power' compares by nothing"),
        ({"objectives": ["energy", "step_seconds"]}, "first of objectives is 'energy', expected .* 'minimise step_sec"),
        ({"objectives": ["step_seconds", "step_seconds"]}, "stands 2 times"),
    ],
)
def test_an_impossible_aim_is_refused_by_field_value_and_expectation(details: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        Aim.of(Study.from_json({**STUDY.as_json(), "details": details}))


def power(clock: float) -> float:
    return 100 + 10 * clock


def test_a_search_within_a_limit_soon_finds_the_best_that_keeps_it() -> None:
    """A faster clock is always better and hotter: 20 of 30 is the best that the cap allows, 3 of 93 configurations."""
    for seed in range(4):
        search, chosen = search_for(replace(CAPPED, seed=seed)), []
        for number in range(10):
            [configuration] = search.suggest(1)
            clock = float(configuration["clock"])
            trial = Trial(configuration, TrialState.DONE, 10 / (5 + clock), f"t{number}")
            search.observe([TrialRecord(trial, "s1", outcomes={"power_watts": power(clock)})])
            chosen.append(clock)
        assert 20 in chosen  # at random in all four: once in 138


def test_a_search_for_several_objectives_tries_both_ends() -> None:
    search, clocks = search_for(BOTH), []
    for number in range(14):
        [configuration] = search.suggest(1)
        clock = float(configuration["clock"])
        trial = Trial(configuration, TrialState.DONE, 1 + (clock - 5) ** 2 / 100, f"t{number}")
        search.observe([TrialRecord(trial, "s1", outcomes={"samples": 10 - (clock - 25) ** 2 / 100})])
        clocks.append(clock)
    assert min(abs(clock - 5) for clock in clocks) <= 1
    assert min(abs(clock - 25) for clock in clocks) <= 1


def test_a_trial_without_all_outcomes_stops_no_search() -> None:
    search = search_for(CAPPED)
    search.observe([done(0, 1.0, {}), done(1, 2.0, {"power_watts": 200.0})])
    assert {"clock": 0, "batch": 1} not in search.suggest(20)
