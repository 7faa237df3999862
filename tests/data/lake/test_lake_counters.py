"""Counters come out of the lake as they were stored, with what tells their differences."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from crosswind.data.lake.lake import Lake, set_of, to_table
from crosswind.data.schema.errors import MalformedError, NotFoundError
from crosswind.data.schema.metric import NODE_KEYS, Column, Kind, MetricSet, OnFull, Scalar

SENT = Column("sent_bytes_total", "sent", Kind.COUNTER, "uint64", "bytes", 4, on_full=OnFull.SATURATE)
ENERGY = Column("energy_joules_total", "energy", Kind.COUNTER, unit="joules", scale=1e-6, range_from="range_joules")
RANGE = Column("range_joules", "range", unit="joules", scale=1e-6)
HEAT = Column("heat_celsius", "heat", unit="celsius", scale=1e-3)
IFINDEX = Column("ifindex", "interface", Kind.EPOCH)
LINK = MetricSet("link", "a link", (*NODE_KEYS, SENT, ENERGY, RANGE, HEAT, IFINDEX))
OLD = MetricSet("link", "before clocks", (*NODE_KEYS[:-1], SENT))
BIG = 2**64 - 1


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def put(lake: Lake, part: str, metric_set: MetricSet, rows: Mapping[str, Sequence[Scalar]]) -> None:
    lake.append(part, to_table(metric_set, rows))


def test_values_are_exact_and_come_with_keys_epochs_clock_and_range(lake: Lake) -> None:
    row = {"ts_ns": 1, "node": "n", "device": "d", "boot_id": "b", "mono_ns": 9, "sent_bytes_total": BIG}
    row |= {"energy_joules_total": 7, "range_joules": 100, "heat_celsius": 41_000, "ifindex": 3}
    put(lake, "p", LINK, {name: [value] for name, value in row.items()})
    table = lake.counters("link", ["sent_bytes_total"])
    assert table.to_pylist() == [
        {"ts_ns": 1, "node": "n", "device": "d", "boot_id": "b", "mono_ns": 9, "sent_bytes_total": BIG, "ifindex": 3}
    ]
    assert set_of(table.schema)["sent_bytes_total"] == SENT
    assert lake.counters("link", ["energy_joules_total"])["range_joules"].to_pylist() == [100]


def test_rows_are_chosen_by_sql_over_what_is_stored(lake: Lake) -> None:
    put(lake, "p", LINK, {"ts_ns": [1, 2, 3], "node": ["a", "b", "c"], "sent_bytes_total": [10, 20, 30]})
    chosen = lake.counters(
        "link", ["sent_bytes_total"], where="node in (select unnest(?)) and ts_ns >= ?", parameters=[["a", "c"], 2]
    )
    assert chosen["sent_bytes_total"].to_pylist() == [30]


def test_a_part_of_before_there_was_a_clock_has_none(lake: Lake) -> None:
    put(lake, "p0", OLD, {"ts_ns": [1], "sent_bytes_total": [10]})
    assert "mono_ns" not in lake.counters("link", ["sent_bytes_total"]).column_names
    put(lake, "p1", LINK, {"ts_ns": [2], "mono_ns": [5], "sent_bytes_total": [20]})
    counters = lake.counters("link", ["sent_bytes_total"]).sort_by("ts_ns").select(["ts_ns", "mono_ns", "ifindex"])
    assert counters.to_pylist() == [
        {"ts_ns": 1, "mono_ns": None, "ifindex": None},
        {"ts_ns": 2, "mono_ns": 5, "ifindex": None},
    ]


@pytest.mark.parametrize(("name", "column"), [("nothing", "x"), ("link", "colour"), ('l"; drop', "x")])
def test_what_is_not_stored_is_refused_by_name(lake: Lake, name: str, column: str) -> None:
    put(lake, "p", LINK, {"ts_ns": [1]})
    with pytest.raises(NotFoundError, match=f"holds no {name}.{column}"):
        lake.counters(name, [column])


def test_a_damaged_file_is_named(lake: Lake) -> None:
    put(lake, "p", LINK, {"ts_ns": [1]})
    put(lake, "p", replace(LINK, name="other"), {"ts_ns": [1]})
    (lake.root / "set=link" / "date=1970-01-01" / "part-bad.parquet").write_bytes(b"PAR1 torn")
    with pytest.raises(MalformedError, match=r"part-bad\.parquet"):
        lake.counters("link", ["sent_bytes_total"])
    assert len(lake.counters("other", ["sent_bytes_total"])) == 1
