"""Searches over spaces that programs name while they run."""

import pytest

from crosswind.data.schema.trial import Study, Trial, TrialRecord, TrialState
from crosswind.models.tuner.search.growing import GrowingSearch, with_conditions
from crosswind.models.tuner.search.search import search_for

OPTIMIZER = {"kind": "categorical", "values": ["adam", "sgd", "none at all"]}
UNIT = {"kind": "float", "low": 0.0, "high": 1.0, "log": False}
LAYERS = {"kind": "int", "low": 1, "high": 4, "log": False}


@pytest.mark.parametrize(
    ("parameters", "configurations", "condition"),
    [
        ({"opt": OPTIMIZER, "p": UNIT}, [{"opt": "adam"}, {"opt": "sgd", "p": 0.5}], "not (opt == 'adam')"),
        ({"on": {"kind": "boolean"}, "p": UNIT}, [{"on": False}, {"on": True, "p": 0.5}], "not (on == False)"),
        ({"n": LAYERS, "p": UNIT}, [{"n": 1}, {"n": 3, "p": 0.5}], "n > 1.0"),
        ({"n": LAYERS, "p": UNIT}, [{"n": 3}, {"n": 1, "p": 0.5}], "n < 3.0"),
        ({"n": LAYERS, "p": UNIT}, [{"n": 2}, {"n": 1, "p": 0.5}, {"n": 3, "p": 0.5}], "not (n == 2.0)"),
        ({"lr": UNIT, "p": UNIT}, [{"lr": 0.25}, {"lr": 0.5, "p": 0.5}], "lr > 0.25"),
        ({"lr": UNIT, "p": UNIT}, [{"lr": 0.5}, {"lr": 0.25, "p": 0.5}, {"lr": 0.75, "p": 0.5}], None),
        ({"opt": OPTIMIZER, "p": UNIT}, [{"opt": "adam"}, {"opt": "adam", "p": 0.5}], None),
        ({"opt": OPTIMIZER, "p": UNIT}, [{"opt": "adam", "p": 0.1}, {"opt": "sgd", "p": 0.5}], None),
        ({"opt": OPTIMIZER, "p": UNIT}, [{"opt": "adam"}, {"opt": "sgd"}], None),
        ({"a/b": OPTIMIZER, "p": UNIT}, [{"a/b": "adam"}, {"a/b": "sgd", "p": 0.5}], None),
    ],
)
def test_a_condition_is_what_tells_apart_the_trials_that_have_a_parameter(
    parameters: dict[str, dict[str, object]], configurations: list[dict[str, object]], condition: str | None
) -> None:
    conditioned = with_conditions(parameters, configurations)  # type: ignore[arg-type]
    assert conditioned["p"].get("when") == condition
    assert all("when" not in parameter for name, parameter in conditioned.items() if name != "p")


def test_conditions_hang_on_choices_before_numbers_and_may_be_nested() -> None:
    parameters = {"lr": UNIT, "opt": OPTIMIZER, "nesterov": {"kind": "boolean"}, "momentum": UNIT}
    configurations = [
        {"lr": 0.1, "opt": "adam"},
        {"lr": 0.5, "opt": "sgd", "nesterov": False},
        {"lr": 0.9, "opt": "sgd", "nesterov": True, "momentum": 0.9},
    ]
    conditioned = with_conditions(parameters, configurations)  # type: ignore[arg-type]
    assert conditioned["nesterov"]["when"] == "not (opt == 'adam')"
    assert conditioned["momentum"]["when"] == "not (nesterov == False)"


def record(number: int, configuration: dict[str, object], value: float | None = None) -> TrialRecord:
    state = TrialState.LEASED if value is None else TrialState.DONE
    return TrialRecord(Trial(configuration, state, value, f"t{number}"), "s")  # type: ignore[arg-type]


def test_suggestions_have_what_applies_and_follow_what_is_learned() -> None:
    parameters = {"opt": OPTIMIZER, "momentum": UNIT}
    growing = GrowingSearch(study({}), search_for)
    growing.observe([record(0, {})])
    assert growing.suggest(2) == [{}, {}]
    growing = GrowingSearch(study(parameters), search_for)
    growing.observe([record(0, {}), record(1, {"opt": "adam"}, 1.0), record(2, {"opt": "sgd", "momentum": 0.5}, 2.0)])
    for configuration in growing.suggest(12):
        assert ("momentum" in configuration) is (configuration["opt"] != "adam")
        assert configuration != {"opt": "adam"}
    growing.observe([record(3, {"opt": "none at all"}, 3.0)])
    assert {one["opt"] for one in growing.suggest(6)} == {"sgd"}


def test_a_parameter_that_a_program_got_later_is_searched_and_old_trials_count() -> None:
    growing = GrowingSearch(study({"lr": UNIT, "workers": LAYERS}), search_for)
    growing.observe([record(number, {"lr": number / 10}, abs(number - 5.0)) for number in range(10)])
    growing.observe([record(11, {"lr": 0.5, "workers": 2}, 0.0)])
    [configuration] = growing.suggest(1)
    assert set(configuration) == {"lr", "workers"}


def study(parameters: dict[str, dict[str, object]]) -> Study:
    return Study("s", "s", {"parameters": parameters}, "loss", "", 0, 0, define_by_run=True)
