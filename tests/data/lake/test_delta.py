"""Differences of counters: each rule by example, and all of them against a reading row by row."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosswind.data.lake.delta import UNKNOWN, Flag, differences
from crosswind.data.lake.lake import to_table
from crosswind.data.lake.series import in_order
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.metric import NODE_KEYS, Column, Kind, MetricSet, OnFull, Scalar

SECOND = 10**9
TOP = 2**64 - 1
COUNT = Column("count_total", "counter", Kind.COUNTER, "uint64")
LANE = Column("lane", "lane", Kind.KEY, "string")
DRIVER = Column("driver_loaded", "driver stamp", Kind.EPOCH)
RANGE = Column("range_joules", "range", dtype="uint64", unit="joules", scale=1e-6)
WRAP32 = replace(COUNT, width_bits=32)
WRAP56 = replace(COUNT, width_bits=56)
SATURATE32 = replace(COUNT, width_bits=32, on_full=OnFull.SATURATE)
RESET = replace(COUNT, on_full=OnFull.RESET)
CLAMP = replace(COUNT, on_full=OnFull.CLAMP)
ENERGY = replace(COUNT, name="energy_joules_total", unit="joules", scale=1e-6, range_from=RANGE.name)
Row = Mapping[str, Any]


def frame(column: Column, rows: Sequence[Row], **keys: Scalar) -> pd.DataFrame:
    metric_set = MetricSet("m", "a set", (*NODE_KEYS, LANE, DRIVER, column, *([RANGE] if column.range_from else [])))
    usual: dict[str, Scalar] = {"node": "n", "device": "d", "boot_id": "b", "lane": "0", "driver_loaded": 1} | keys
    columns = {field.name: [(usual | dict(row)).get(field.name) for row in rows] for field in metric_set.columns}
    return differences(in_order(to_table(metric_set, columns)), column.name)


def every_second(column: Column, values: Sequence[int | float | None], **more: Scalar) -> list[Row]:
    """Rows one second apart."""
    times = [number * SECOND for number in range(len(values))]
    return [
        {"ts_ns": time, "mono_ns": time, column.name: value, **more} for time, value in zip(times, values, strict=True)
    ]


def flagged(changes: pd.DataFrame) -> list[tuple[int | None, Flag]]:
    deltas = [None if pd.isna(value) else value for value in changes["delta"]]
    return list(zip(deltas, map(Flag, changes["flag"].tolist()), strict=True))


NONE = Flag(0)
FIRST = (None, Flag.FIRST)


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        (COUNT, [5, 7, 7], [(2, NONE), (0, NONE)]),
        (COUNT, [2**53, 2**53 + 1, TOP], [(1, NONE), (TOP - 2**53 - 1, NONE)]),
        (COUNT, [TOP - 4, 5], [(10, NONE)]),
        (COUNT, [100, 5, 6], [(None, Flag.AMBIGUOUS), (1, NONE)]),
        (WRAP32, [2**32 - 1, 0, 2**31], [(1, NONE), (2**31, NONE)]),
        (WRAP32, [3_000_000_000, 1_000_000_000], [(None, Flag.AMBIGUOUS)]),
        (replace(WRAP32, max_rate=2**32), [3_000_000_000, 1_000_000_000], [(2_294_967_296, NONE)]),
        (WRAP32, [1000, 5], [(None, Flag.AMBIGUOUS)]),
        (WRAP32, [2**40, 5], [(None, Flag.AMBIGUOUS)]),
        (WRAP56, [2**56 - 3, 4], [(7, NONE)]),
        (SATURATE32, [1, 2**32 - 2, 2**32 - 1, 2**32 - 1], [(2**32 - 3, NONE), *[(None, Flag.SATURATED)] * 2]),
        (SATURATE32, [2**32 - 1, 3, 5], [(None, Flag.SATURATED), (2, NONE)]),
        (RESET, [100, 5, 6], [(5, Flag.RESET), (1, NONE)]),
        (
            replace(RESET, max_rate=10),
            [100, 5, 3, 50, 11],
            [(5, Flag.RESET), (3, Flag.RESET), (47, NONE), (None, Flag.AMBIGUOUS)],
        ),
        (CLAMP, [548281, 548282, 548281, 548282, 548284], [(1, NONE), (0, Flag.CORRECTED), (0, NONE), (2, NONE)]),
        (CLAMP, [100, 3, 5], [(0, Flag.CORRECTED), (2, NONE)]),
        (CLAMP, [100, 101, 3, 5], [(1, NONE), (0, Flag.CORRECTED), (2, NONE)]),
        (COUNT, [5, None, None, 9], [(None, Flag.MISSING), (None, Flag.MISSING), (4, Flag.GAP)]),
        (RESET, [9, None, 5], [(None, Flag.MISSING), (5, Flag.GAP | Flag.RESET)]),
        (replace(COUNT, dtype="int64"), [5, -3, 9], [(None, Flag.MISSING), (4, Flag.GAP)]),
        (replace(COUNT, dtype="float64"), [0.5, 2.0, 1.0], [(1.5, NONE), (None, Flag.AMBIGUOUS)]),
        (replace(WRAP32, dtype="float64"), [2.0**32 - 1, 1.0], [(2.0, NONE)]),
        (replace(SATURATE32, dtype="float64"), [1.5, 2.0, 2.0**32], [(0.5, NONE), (None, Flag.SATURATED)]),
        (replace(COUNT, dtype="float64", on_full=OnFull.SATURATE), [1.5, 2.0], [(0.5, NONE)]),
        (replace(COUNT, dtype="float64"), [1.0, float("inf"), 2.0], [(None, Flag.MISSING), (1.0, Flag.GAP)]),
    ],
)
def test_a_counter_grows_by(
    column: Column, values: Sequence[int | None], expected: Sequence[tuple[int | None, Flag]]
) -> None:
    assert flagged(frame(column, every_second(column, values))) == [FIRST, *expected]


def test_growth_and_rate_are_in_base_units_over_the_seconds_between() -> None:
    column = replace(COUNT, scale=4)
    changes = frame(column, every_second(column, [0, None, 500, 750]))
    assert changes["growth"].tolist() == [pd.NA, pd.NA, 2000.0, 1000.0]
    assert changes["seconds"].tolist() == [pd.NA, pd.NA, 2.0, 1.0]
    assert changes["rate"].tolist() == [pd.NA, pd.NA, 1000.0, 1000.0]
    assert [str(dtype) for dtype in changes.dtypes] == ["UInt64", "Float64", "Float64", "Float64", "int16"]


def test_energy_wraps_at_the_range_that_stands_beside_it() -> None:
    rows = every_second(ENERGY, [262_143_000_000, 1_000_000], range_joules=262_143_328_850)
    assert flagged(frame(ENERGY, rows)) == [FIRST, (1_328_850, NONE)]
    assert flagged(frame(ENERGY, every_second(ENERGY, [9, 5]))) == [FIRST, (None, Flag.AMBIGUOUS)]  # no range was read
    assert flagged(frame(ENERGY, every_second(ENERGY, [9, 5], range_joules=3))) == [FIRST, (None, Flag.AMBIGUOUS)]


def test_where_no_range_stands_beside_a_counter_it_is_as_wide_as_its_column() -> None:
    port = replace(ENERGY, on_full=OnFull.SATURATE)
    values = [2**32 - 2, 2**32 - 1]
    assert flagged(frame(port, every_second(port, values, range_joules=2**32))) == [FIRST, (None, Flag.SATURATED)]
    assert flagged(frame(port, every_second(port, values))) == [FIRST, (1, NONE)]


def test_a_gap_in_which_it_could_have_wrapped_twice_has_no_difference() -> None:
    column = replace(WRAP32, max_rate=2**31)
    rows = every_second(column, [0, 1, 2, 3])
    assert flagged(frame(column, [rows[0], rows[2]])) == [FIRST, (2, NONE)]
    assert flagged(frame(column, [rows[0], rows[3]])) == [FIRST, (None, Flag.AMBIGUOUS)]


def test_a_fall_that_only_an_impossible_rate_could_have_wrapped_has_no_difference() -> None:
    """A socket that seems to have drawn megawatts was read wrongly, or were reset."""
    column = replace(ENERGY, max_rate=1000.0)
    rows = every_second(column, [200_000_000_000, 5], range_joules=262_143_328_850)
    assert flagged(frame(column, rows)) == [FIRST, (None, Flag.AMBIGUOUS)]


@pytest.mark.parametrize("epoch", [{"boot_id": "c"}, {"driver_loaded": 2}, {"driver_loaded": None}, {"boot_id": None}])
@pytest.mark.parametrize("column", [COUNT, WRAP32, SATURATE32, RESET, CLAMP])
def test_no_change_is_computed_across_epochs(column: Column, epoch: Row) -> None:
    first, second, third = every_second(column, [10, 3, 4])
    assert flagged(frame(column, [first, {**second, **epoch}, {**third, **epoch}])) == [
        FIRST,
        (None, Flag.EPOCH),
        (1, NONE),
    ]


def test_an_epoch_that_came_and_went_while_no_value_was_read_is_noticed() -> None:
    first, second, third = every_second(COUNT, [10, None, 14])
    changes = frame(COUNT, [first, {**second, "driver_loaded": 2}, third])
    assert flagged(changes)[2] == (None, Flag.EPOCH | Flag.GAP)


def test_series_are_distinguished_by_every_key_and_rows_may_come_in_any_order() -> None:
    rows = [
        {"ts_ns": 3 * SECOND, "count_total": 9},
        {"ts_ns": 2 * SECOND, "count_total": 50, "lane": "1"},
        {"ts_ns": 1 * SECOND, "count_total": 4},
        {"ts_ns": 3 * SECOND, "count_total": 7, "node": "m"},
        {"ts_ns": 3 * SECOND, "count_total": 51, "lane": "1"},
        {"ts_ns": 4 * SECOND, "count_total": 8, "device": None},
    ]
    assert flagged(frame(COUNT, rows)) == [(5, NONE), FIRST, FIRST, FIRST, (1, NONE), FIRST]


def test_a_clock_that_is_set_back_changes_no_difference() -> None:
    rows = [
        {"ts_ns": 100 * SECOND, "mono_ns": 1 * SECOND, "count_total": 10},
        {"ts_ns": 40 * SECOND, "mono_ns": 2 * SECOND, "count_total": 12},
        {"ts_ns": 41 * SECOND, "mono_ns": 4 * SECOND, "count_total": 18},
    ]
    changes = frame(COUNT, rows)
    assert flagged(changes) == [FIRST, (2, NONE), (6, NONE)]
    assert changes["seconds"].tolist()[1:] == [1.0, 2.0]


def test_without_a_clock_since_boot_or_without_a_boot_the_time_of_day_has_to_do() -> None:
    rows = [{**row, "mono_ns": None} for row in every_second(COUNT, [1, 2])]
    assert frame(COUNT, rows)["seconds"].tolist()[1] == 1.0
    later = {"ts_ns": 5 * SECOND, "mono_ns": 1, "count_total": 3}
    assert frame(COUNT, [*every_second(COUNT, [1, 2]), later], boot_id=None)["seconds"].tolist()[2] == 4.0


def test_two_boots_whose_rows_interleave_break_once() -> None:
    rows = [
        {"ts_ns": time * SECOND, "mono_ns": time * SECOND, "boot_id": boot, "count_total": value}
        for time, boot, value in [(1, "b", 100), (2, "c", 1), (3, "b", 101), (4, "c", 2)]
    ]
    assert flagged(frame(COUNT, rows)) == [FIRST, (None, Flag.EPOCH), (1, NONE), (1, NONE)]


def test_rows_that_came_twice_count_once() -> None:
    rows = every_second(WRAP32, [10, 15])
    assert flagged(frame(WRAP32, [*rows, *rows])) == [FIRST, (5, NONE), *[(None, Flag.REPEATED)] * 2]


def test_columns_apart_make_series_of_their_own() -> None:
    metric_set = MetricSet("m", "", (*NODE_KEYS, COUNT))
    rows = to_table(metric_set, {"ts_ns": [1, 2, 3, 4], "count_total": [1, 2, 30, 31]})
    rows = rows.append_column("run", [["r", "r", "s", "s"]])
    assert flagged(differences(in_order(rows, apart=["run"]), "count_total"))[2] == FIRST


def test_no_rows_have_no_differences() -> None:
    assert len(frame(COUNT, [])) == 0


def test_numbers_too_large_for_a_double_are_missing_rather_than_infinite() -> None:
    column = replace(COUNT, dtype="float64", scale=1e20)
    changes = frame(column, every_second(column, [0.0, 1e300]))
    assert changes["delta"].tolist()[1] == 1e300
    assert changes["growth"].tolist()[1] is pd.NA
    assert changes["rate"].tolist()[1] is pd.NA


@pytest.mark.parametrize("name", ["driver_loaded", "range_joules"])
def test_only_counters_have_differences(name: str) -> None:
    table = to_table(MetricSet("m", "", (*NODE_KEYS, DRIVER, RANGE)), {"ts_ns": [1]})
    with pytest.raises(InvalidInputError, match=f"m.{name}: a .*, no counter"):
        differences(in_order(table), name)


def test_rows_without_a_time_are_refused() -> None:
    table = to_table(MetricSet("m", "", (*NODE_KEYS, COUNT)), {"ts_ns": [1]})
    with pytest.raises(InvalidInputError, match="expected a ts_ns in every row"):
        in_order(table.drop_columns("ts_ns"))


# The same once more, row by row.


def reference(column: Column, rows: Sequence[Row]) -> list[tuple[int | None, int | None, Flag]]:
    """Delta, nanoseconds and flag of each row."""
    outcome: dict[int, tuple[int | None, int | None, Flag]] = {}
    keys = [(row["node"], row["device"], row["lane"]) for row in rows]
    for key in set(keys):
        numbers = [number for number, other in enumerate(keys) if other == key]
        boots = {rows[number]["boot_id"] for number in numbers}
        seen = {boot: min(rows[n]["ts_ns"] for n in numbers if rows[n]["boot_id"] == boot) for boot in boots}
        first = {boot: numbers.index(next(n for n in numbers if rows[n]["boot_id"] == boot)) for boot in boots}
        walked: list[tuple[int, int]] = []
        for boot in sorted(boots, key=lambda boot: (seen[boot], first[boot])):
            of_boot = [number for number in numbers if rows[number]["boot_id"] == boot]
            has_clock = boot is not None and all(rows[number]["mono_ns"] is not None for number in of_boot)
            clock = "mono_ns" if has_clock else "ts_ns"
            walked += sorted(((number, rows[number][clock]) for number in of_boot), key=lambda pair: pair[1])
        outcome |= walk(column, rows, walked)
    return [outcome[number] for number in range(len(rows))]


def walk(
    column: Column, rows: Sequence[Row], walked: Sequence[tuple[int, int]]
) -> dict[int, tuple[int | None, int | None, Flag]]:
    outcome: dict[int, tuple[int | None, int | None, Flag]] = {}
    last: int | None = None
    last_time, highest, has_gap, has_changed, epoch = 0, 0, False, False, None
    for number, time in walked:
        row = rows[number]
        value = row[column.name]
        has_changed |= epoch is not None and epoch != (row["boot_id"], row["driver_loaded"])
        epoch = (row["boot_id"], row["driver_loaded"])
        if value is None:
            outcome[number], has_gap = (None, None, Flag.MISSING), last is not None
            continue
        same_boot = last is not None and rows[last]["boot_id"] == row["boot_id"]
        if last is not None and same_boot and last_time == time:
            outcome[number] = (None, None, Flag.REPEATED)
            continue
        gap = Flag.GAP if has_gap else NONE
        if last is None or has_changed:
            outcome[number] = (None, None, Flag.FIRST if last is None else Flag.EPOCH | gap)
            highest = value
        else:
            before = rows[last][column.name]
            delta, flag, highest = rule(column, before, value, highest, row, time - last_time)
            outcome[number] = (delta, time - last_time, flag | gap)
        last, last_time, has_gap, has_changed = number, time, False, False
    return outcome


def rule(column: Column, before: int, value: int, highest: int, row: Row, span_ns: int) -> tuple[int | None, Flag, int]:
    end = (column.range_from and row[RANGE.name]) or 2**column.width_bits
    most = Fraction(column.max_rate) / Fraction(column.scale) * span_ns / SECOND
    match column.on_full:
        case OnFull.CLAMP if value < before // 2:
            return 0, Flag.CORRECTED, value
        case OnFull.CLAMP:
            return max(value - highest, 0), Flag.CORRECTED if value < highest else NONE, max(value, highest)
        case OnFull.RESET if value < before:
            return (None, Flag.AMBIGUOUS, 0) if most and value > most else (value, Flag.RESET, 0)
        case OnFull.SATURATE if value < before or value >= end - 1:
            return None, Flag.SATURATED, 0
        case OnFull.WRAP if most and most > end:
            return None, Flag.AMBIGUOUS, 0
        case OnFull.WRAP if value < before:
            delta = value - before + end
            return (delta, NONE, 0) if 0 <= delta <= (most or end // 2) else (None, Flag.AMBIGUOUS, 0)
    return value - before, NONE, 0


def rows_of(column: Column) -> st.SearchStrategy[list[dict[str, Any]]]:
    edges = [0, 1, 2**16, 2**32 - 1, 2**32, 2**53 + 1, 2**56 - 1, 2**63, TOP]
    values = st.none() | st.integers(0, 300) | st.sampled_from(edges) | st.integers(0, TOP)
    row = {
        "ts_ns": st.integers(0, 12) | st.sampled_from([-(2**63), 2**63 - 1]),
        "mono_ns": st.integers(0, 8) | st.integers(0, 2**40) | (st.none() if column.max_rate else st.nothing()),
        "boot_id": st.sampled_from(["b"] * 8 + ["c", None]),
        "node": st.sampled_from(["n"] * 5 + ["m"]),
        "device": st.sampled_from(["d"] * 6 + ["e", None]),
        "lane": st.sampled_from(["0"] * 5 + ["1"]),
        "driver_loaded": st.sampled_from([1] * 8 + [2, None]),
        column.name: values,
        RANGE.name: st.none() | st.sampled_from([0, 200, 2**32, TOP]),
    }
    return st.lists(st.fixed_dictionaries(row), max_size=25)


COLUMNS = [
    *(COUNT, WRAP32, WRAP56, SATURATE32, RESET, CLAMP, ENERGY),
    replace(COUNT, on_full=OnFull.SATURATE),
    replace(ENERGY, on_full=OnFull.SATURATE),
    replace(WRAP32, width_bits=1),
    replace(WRAP32, max_rate=2.0**20, scale=0.5),
    replace(RESET, max_rate=2.0**30),
    replace(COUNT, max_rate=2.0**30),
    replace(ENERGY, max_rate=2.0**-10, scale=2.0**-20),
]


@pytest.mark.thorough
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(COLUMNS).flatmap(lambda column: st.tuples(st.just(column), rows_of(column))))
def test_the_vectors_say_what_a_walk_row_by_row_says(drawn: tuple[Column, list[dict[str, Any]]]) -> None:
    column, rows = drawn
    changes, expected = frame(column, rows), reference(column, rows)
    assert flagged(changes) == [(delta, flag) for delta, _, flag in expected]
    for got, (delta, span_ns, flag) in zip(changes.itertuples(index=False), expected, strict=True):
        is_unknown = bool(flag & UNKNOWN)
        assert (delta is None) == is_unknown == pd.isna(got.growth) == pd.isna(got.seconds) == pd.isna(got.rate)
        if delta is not None and span_ns is not None:
            assert got.delta >= 0
            assert got.growth == pytest.approx(delta * column.scale)
            assert got.seconds == pytest.approx(span_ns / SECOND)
            assert got.rate == pytest.approx(delta * column.scale * SECOND / span_ns)


@settings(max_examples=50, deadline=None)
@given(rows_of(CLAMP), st.randoms(use_true_random=False))
def test_the_order_in_which_rows_come_changes_nothing(rows: list[dict[str, Any]], random: Any) -> None:
    apart = [{**row, "ts_ns": number, "mono_ns": number, "boot_id": "b"} for number, row in enumerate(rows)]
    shuffled = random.sample(range(len(apart)), len(apart))
    ordered = flagged(frame(CLAMP, apart))
    assert flagged(frame(CLAMP, [apart[number] for number in shuffled])) == [ordered[number] for number in shuffled]
