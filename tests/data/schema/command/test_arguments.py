import shlex

import pytest

from crosswind.data.schema.command.arguments import MAX_ARGUMENTS, arguments_of, value_of


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--batch_size=8 --lr 1e-3", {"batch_size": 8, "lr": 0.001}),
        ("--batch-size 8 -b 4 --flag", {"batch_size": 8, "b": 4, "flag": True}),
        ("--offset -1 --flag --other", {"offset": -1, "flag": True, "other": True}),
        ("model=big +opt.lr=0.1 ++a/b=x ~gone=1", {"model": "big", "opt.lr": 0.1, "a/b": "x", "~gone": 1}),
        ("--layers 64 128 --name x y", {"layers": "64 128", "name": "x", "argument1": "y"}),
        ("train 7 -- last", {"argument1": "train", "argument2": 7, "argument3": "last"}),
        ("--set a --set b", {"set": "a b"}),
        ("--empty= --url=http://x?a=b", {"empty": "", "url": "http://x?a=b"}),
    ],
)
def test_arguments_are_read_by_name(words: str, expected: dict[str, object]) -> None:
    assert {argument.name: argument.value for argument in arguments_of(shlex.split(words))} == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ("-3", -3),
        ("1e-3", 0.001),
        ("0.001", 0.001),
        (".5", 0.5),
        ("True", True),
        ("false", False),
        ("007", "007"),
    ],
)
def test_values_are_numbers_where_they_read_as_such(text: str, value: object) -> None:
    assert value_of(text) == value
    assert type(value_of(text)) is type(value)


@pytest.mark.parametrize("text", ["nan", "inf", "1_000", "0x10", "1e999999", "9" * 40])
def test_what_is_no_finite_number_of_a_machine_stays_text(text: str) -> None:
    assert value_of(text) == text or value_of(text) == float(text)
    assert isinstance(value_of(text), str) or value_of(text) < float("inf")  # type: ignore[operator]


def test_more_arguments_than_can_be_kept_are_cut_off() -> None:
    assert len(arguments_of([f"--a{number}=1" for number in range(MAX_ARGUMENTS + 50)])) == MAX_ARGUMENTS
