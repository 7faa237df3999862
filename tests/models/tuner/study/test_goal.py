"""Objectives and limits as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration
from crosswind.models.tuner.study.goal import Goal
from crosswind.models.tuner.study.limit import Limit
from crosswind.models.tuner.study.objective import Objective

OUTCOMES = {"step_p50_seconds": 0.5, "energy_joules": 80.0, "power_watts": 160.0}
CONFIGURATION: Configuration = {"batch": 16, "precision": "bf16"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("step_p50_seconds", 0.5),
        ("minimise energy_joules / batch", 5.0),
        ("maximise batch / step_p50_seconds", -32.0),
        ("maximize power_watts", -160.0),
        ("energy_joules * step_p50_seconds", 40.0),
        ("  Minimize  max(power_watts, 200)", 200.0),
    ],
)
def test_an_objective_is_an_expression_to_make_smaller(text: str, value: float) -> None:
    assert Goal.parse([text]).judge(CONFIGURATION, OUTCOMES).objectives == (value,)


def test_an_objective_is_written_as_it_is_read() -> None:
    objective = Objective.parse("maximise batch / step_p50_seconds")
    assert Objective.parse(objective.text) == objective
    assert objective.expression.names == {"batch", "step_p50_seconds"}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("power_watts <= 160", True),
        ("power_watts < 159.9", False),
        ("step_p50_seconds >= 0.5", True),
        ("0.6 > step_p50_seconds", True),
        ("energy_joules / batch <= power_watts - 158", False),
    ],
)
def test_a_limit_compares_two_expressions(text: str, holds: bool) -> None:
    assert Goal.parse(["step_p50_seconds"], [text]).judge(CONFIGURATION, OUTCOMES).keeps_limits is holds


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_a_limit_turned_round_says_the_same(a: float, b: float) -> None:
    goals = [Goal.parse(["a"], [limit]) for limit in ("a <= b", "b >= a")]
    assert [goal.judge({"a": a}, {"b": b}).keeps_limits for goal in goals] == [a <= b] * 2


def test_an_outcome_goes_before_a_parameter_of_its_name() -> None:
    assert Goal.parse(["batch"]).judge(CONFIGURATION, {"batch": 3.0}).objectives == (3.0,)


@pytest.mark.parametrize("text", ["", "minimise", "1 + 1", "import os", "a ==", 7])
def test_what_is_no_objective_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="expected"):
        Objective.parse(text)


@pytest.mark.parametrize("text", ["power_watts", "a <= b <= c", "a == 1", "1 <= 2", "<= 5", "a != b", "", 3])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="expected"):
        Limit.parse(text)


@pytest.mark.parametrize(
    ("objective", "outcomes", "message"),
    [
        ("step_p50_seconds", {}, "step_p50_seconds"),
        ("step_p50_seconds", {"step_p50_seconds": float("nan")}, "step_p50_seconds is nan"),
        ("step_p50_seconds", {"step_p50_seconds": float("inf")}, "inf"),
        ("1 / energy_joules", {"energy_joules": 0.0}, "energy_joules = 0.0"),
        ("precision", {}, "expected a finite number"),
        ("power_watts < 3", {"power_watts": 1.0}, "expected a finite number"),
    ],
)
def test_outcomes_that_give_no_number_are_refused(objective: str, outcomes: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Goal.parse([objective]).judge(CONFIGURATION, outcomes)


def test_goals_have_one_to_four_different_objectives() -> None:
    with pytest.raises(InvalidInputError, match="there are 0 objectives, expected 1 to 4"):
        Goal.parse([])
    with pytest.raises(InvalidInputError, match="there are 5 objectives, expected 1 to 4"):
        Goal.parse(["a", "b", "c", "d", "e"])
    with pytest.raises(InvalidInputError, match="'a' stands 2 times"):
        Goal.parse(["a", "maximise a"])
