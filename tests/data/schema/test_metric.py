import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.data.schema.errors import InvalidInputError, MalformedError
from crosswind.data.schema.metric import MAX_COLUMNS, Column, Kind, MetricSet, OnFull, Sample, is_name
from crosswind.data.schema.steps import COLLECTIVE, PHASES, STEP

PORT = MetricSet(
    "port",
    "one port",
    (
        Column("ts_ns", "time", Kind.KEY),
        Column("receive_bytes_total", "received", Kind.COUNTER, "uint64", "bytes", 4, 32, OnFull.SATURATE),
        Column("heat_celsius", "heat", dtype="float64", scale=0.1),
        Column("state", "link", Kind.FACT, "string"),
    ),
)


def test_a_set_comes_back_from_json_as_it_was() -> None:
    assert MetricSet.from_json(json.loads(json.dumps(PORT.as_json()))) == PORT


def test_a_set_from_before_rates_were_bounded_is_still_read() -> None:
    value = changed(lambda value: [column.pop("max_rate") for column in value["columns"]])
    assert MetricSet.from_json(value) == PORT


def test_values_become_base_units_and_missing_stays_missing() -> None:
    sample = Sample("p1", {"receive_bytes_total": 250, "heat_celsius": None, "state": "up"})
    assert PORT.convert(sample) == {"receive_bytes_total": 1000, "heat_celsius": None, "state": "up"}


def test_an_unknown_column_is_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match="metric set port has no column 'watts'"):
        PORT["watts"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "drop table"}, "column 'drop table'"),
        ({"name": 'x" from y; --'}, "column"),
        ({"name": "Upper"}, "column 'Upper'"),
        ({"name": "größe"}, "column 'größe'"),
        ({"name": ""}, "column ''"),
        ({"name": "x" * 65}, "column"),
        ({"dtype": "object"}, "dtype 'object' is not one of int64"),
        ({"scale": 0}, "scale 0"),
        ({"scale": float("nan")}, "scale nan"),
        ({"scale": float("inf")}, "scale inf"),
        ({"scale": 10**400}, "scale 1000"),
        ({"scale": True}, "scale True"),
        ({"dtype": "string", "scale": 2.0}, "scale 2.0 of a string"),
        ({"dtype": "bool", "scale": 2.0}, "scale 2.0 of a bool"),
        ({"width_bits": 0}, "width_bits 0, expected 1 to 64"),
        ({"width_bits": 10**9}, "width_bits 1000000000"),
        ({"max_rate": -1}, "max_rate -1"),
        ({"max_rate": float("nan")}, "max_rate nan"),
        ({"max_rate": True}, "max_rate True"),
        ({"kind": Kind.COUNTER, "scale": -1}, "scale -1 of a counter"),
    ],
)
def test_a_column_that_no_query_could_name_or_scale_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Column(**{"name": "x", "description": "", **fields})


def test_a_set_is_a_plain_name_with_each_column_once() -> None:
    with pytest.raises(InvalidInputError, match=r"metric set '\.\./step'"):
        MetricSet("../step", "", ())
    with pytest.raises(InvalidInputError, match="stands twice"):
        MetricSet("s", "", (Column("x", ""), Column("x", "again")))
    with pytest.raises(InvalidInputError, match=f"{MAX_COLUMNS + 1} columns"):
        MetricSet("s", "", tuple(Column(f"c{number}", "") for number in range(MAX_COLUMNS + 1)))


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(json.dumps(PORT.as_json()))
    change(value)
    return value


@pytest.mark.parametrize(
    "value",
    [
        {},
        changed(lambda value: value.pop("columns")),
        changed(lambda value: value.update(columns=5)),
        changed(lambda value: value.update(columns=["ts_ns"])),
        changed(lambda value: value.update(name=None)),
        changed(lambda value: value.update(version="two")),
        changed(lambda value: value["columns"][0].pop("name")),
        changed(lambda value: value["columns"][0].update(name=7)),
        changed(lambda value: value["columns"][0].update(name=["ts_ns"])),
        changed(lambda value: value["columns"][0].update(kind="colour")),
        changed(lambda value: value["columns"][0].update(dtype=["int64"])),
        changed(lambda value: value["columns"][0].update(scale="1")),
        changed(lambda value: value["columns"][0].update(max_rate="fast")),
        changed(lambda value: value["columns"][0].update(width_bits=None)),
        changed(lambda value: value["columns"][0].update(colour="red")),
    ],
)
def test_a_set_that_cannot_be_one_is_malformed_whatever_is_wrong(value: dict[str, Any]) -> None:
    with pytest.raises(MalformedError, match="metric set in segment"):
        MetricSet.from_json(value)


@given(st.text())
def test_a_name_is_safe_as_folder_table_and_column(text: str) -> None:
    assert not is_name(text) or (text.isascii() and not set(text) & set("/.\"' \\\0;-") and text == text.lower())


def test_no_name_is_a_number_or_nothing() -> None:
    assert not any(is_name(value) for value in (None, 7, b"x", "", "7x"))


def test_steps_have_a_duration_for_every_phase_in_seconds() -> None:
    for phase in ("duration", *PHASES):
        column = STEP[f"{phase}_seconds"]
        assert (column.dtype, column.scale, column.unit) == ("int64", 1e-9, "s")
    assert COLLECTIVE["duration_seconds"].scale == 1e-9
