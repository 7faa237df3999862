"""Answers from JSON, by the types of their fields."""

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import pytest

from crosswind.client.decoding import decode
from crosswind.client.protocol import Client
from crosswind.data.schema.answers.explanations import CauseShare, Explanation, Interval, Verdict
from crosswind.data.schema.answers.weather import HourForecast, Pace


@dataclass(frozen=True)
class Wide:
    """A field of every kind that answers have."""

    number: float
    count: int
    flag: bool
    text: str | None
    pace: Pace
    pair: tuple[str, int]
    rows: tuple[tuple[float, ...], ...]
    names: list[str]
    by_pace: Mapping[Pace, int]
    more: str = "default"


WIDE = Wide(1.5, 3, True, None, Pace.USUAL, ("a", 1), ((0.5,), ()), ["x"], {Pace.SLOWER: 2})


def said(answer: object) -> dict[str, object]:
    sent: dict[str, object] = json.loads(json.dumps(asdict(answer)))  # type: ignore[call-overload]
    return sent


def test_an_answer_comes_back_as_it_was() -> None:
    share = CauseShare("network", Interval(2.0, 1.0, 3.0), "drops")
    slow = Explanation("r", Verdict.SLOW, "s", "n", 9, 40, excess=Interval(2.5, 1.0, 4.0), shares=(share,), also=("a",))
    for answer in (WIDE, slow, HourForecast(10**18, Pace.FASTER, 0.9, 0.8, 1.0)):
        assert decode(type(answer), said(answer)) == answer


def test_a_moment_is_text_too() -> None:
    assert HourForecast(0, Pace.USUAL, 1.0, 1.0, 1.0).at == "1970-01-01T00:00:00.000000000Z"


def test_a_null_number_is_not_a_number_and_a_whole_one_is_a_number() -> None:
    assert math.isnan(decode(Interval, {"value": None, "low": 1, "high": 2}).value)
    assert isinstance(decode(Interval, {"value": 3, "low": 1, "high": 2}).value, float)


def test_unknown_fields_are_ignored_and_defaults_filled() -> None:
    sent = {name: value for name, value in said(WIDE).items() if name != "more"}
    assert decode(Wide, sent | {"newer": 1}) == WIDE


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("number", "1", "Wide.number is '1', expected float"),
        ("number", True, "Wide.number is True, expected float"),
        ("count", 1.5, "Wide.count is 1.5, expected int"),
        ("count", True, "Wide.count is True, expected int"),
        ("flag", 1, "Wide.flag is 1, expected bool"),
        ("text", 7, "Wide.text is 7, expected str"),
        ("pace", "hasty", "'hasty' is not a valid Pace"),
        ("pair", "ab", "Wide.pair is 'ab', expected a list"),
        ("pair", ["a"], "longer|shorter"),
        ("rows", [[0.5, "x"]], r"Wide.rows\[0\]\[1\] is 'x', expected float"),
        ("names", {"x": 1}, "Wide.names is {'x': 1}, expected a list"),
        ("by_pace", [1], r"Wide.by_pace is \[1\], expected an object"),
    ],
)
def test_what_does_not_fit_is_named(field: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode(Wide, said(WIDE) | {field: value})


def test_what_is_missing_is_named() -> None:
    sent = said(WIDE)
    del sent["pace"]
    with pytest.raises(ValueError, match=r"Wide.pace is missing"):
        decode(Wide, sent)
    with pytest.raises(ValueError, match="Wide is 3, expected an object"):
        decode(Wide, 3)


def test_every_answer_can_be_decoded() -> None:
    """No field of an answer has a type that the client cannot read."""
    for name, method in vars(Client).items():
        kind = getattr(method, "__annotations__", {}).get("return")
        if dataclasses.is_dataclass(kind):
            with pytest.raises(ValueError, match="is missing"):
                decode(kind, {})  # type: ignore[arg-type]
            assert name
