from typing import Any

from crosswind.data.schema.question import Question
from crosswind.models.next_run.unknown import novelties, suggestion


def of(configuration: dict[str, Any], world_size: int = 1, system: str = "lab") -> Question:
    return Question("gpt", system, configuration, world_size)


def test_what_ran_is_not_new() -> None:
    ran = [of({"batch": 8, "fused": True}), of({"batch": 32, "fused": True}, 4)]
    assert novelties(of({"batch": 16, "fused": True}, 2), ran) == []


def test_every_new_value_is_named_with_those_that_ran() -> None:
    ran = [of({"batch": 8, "precision": "bf16", "fused": False})]
    assert novelties(of({"batch": 64, "precision": "fp8", "fused": True}, 16, "other"), ran) == [
        "batch is 64, earlier runs had 8 to 8",
        "fused is True, earlier runs had False",
        "precision is fp8, earlier runs had bf16",
        "system is other, earlier runs had lab",
        "world_size is 16, earlier runs had 1 to 1",
    ]


def test_a_parameter_that_only_one_side_has_is_named() -> None:
    assert novelties(of({"batch": 8, "zero": 3}), [of({"batch": 8})]) == ["zero is 3, no earlier run had it"]
    assert novelties(of({}), [of({"batch": 8})]) == ["batch is not given, earlier runs had it"]


def test_what_some_runs_went_without_may_be_left_out_again() -> None:
    assert novelties(of({}), [of({"batch": 8}), of({})]) == []


def test_a_text_where_numbers_ran_is_new() -> None:
    assert novelties(of({"batch": "auto"}), [of({"batch": 8})]) == ["batch is auto, earlier runs had 8"]


def test_nothing_is_new_where_nothing_ran() -> None:
    assert novelties(of({"batch": 8}), []) == []


def test_the_closest_name_is_suggested_or_the_first_six() -> None:
    assert suggestion("nanogtp", ["bert", "nanogpt"]) == "; did you mean nanogpt?"
    assert suggestion("zzz", list("bcdefgha")) == "; known are a, b, c, d, e, f ..."
    assert suggestion("zzz", []) == ""
