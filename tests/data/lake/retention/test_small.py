"""Roll-ups store no number that follows from others, and read as if they did, to the last bit."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.data.lake.retention.rolled_store import APART, DAY, DAYS, METER, SECOND, START, fill

from crosswind.data.lake.instance import new_connection
from crosswind.data.lake.lake import Lake, to_table
from crosswind.data.lake.retention import rolling
from crosswind.data.lake.retention.rolled_set import packed, parts_of, sampled, unpacked
from crosswind.data.lake.retention.upkeep import upkeep
from crosswind.data.schema.keeping import KeepPolicy
from crosswind.data.schema.metric import Column
from crosswind.data.store.store import Store

LATE = START + DAY // 2


def whole(column: Column) -> Mapping[str, str]:
    """Store every part, as roll-ups of before do."""
    return {part: f'"{part}"' for part in parts_of(column)}


def kept(lake: Lake, text: str, days: float) -> None:
    assert upkeep(lake, KeepPolicy.of(text), now_ns=START + int(days * DAY)).problems == []


def parts_in(lake: Lake, seconds: int) -> pa.Table:
    """Return what the roll-ups of a resolution say, in order."""
    name = f"rollup_{seconds}s_meter"
    parts = _listed(list(sampled(lake.columns("meter"))), unpacked)
    with new_connection() as connection:
        source = lake.source(name, lake.parts(name))
        sql = f"select ts_ns, node, device, {parts} from {source} order by all"
        return connection.sql(sql).to_arrow_table()


@pytest.fixture
def lakes(tmp_path: Path) -> Iterator[tuple[Lake, Lake]]:
    """Two lakes of the same samples."""
    with Store.open(tmp_path / "one") as one, Store.open(tmp_path / "two") as two:
        for store in (one, two):
            fill(store.lake)
        yield one.lake, two.lake


def add_late(lake: Lake) -> None:
    power = {"ts_ns": [LATE], "mono_ns": [LATE], "node": ["n1"], "device": ["d0"], "power_watts": [7.0]}
    lake.append("late", to_table(METER, power))


def alike(one: pa.Table, other: pa.Table) -> None:
    """Check that two roll-ups say the same; sums depend on the order of the samples by a last bit."""
    for name in one.column_names:
        ones, others = (table[name].to_pandas() for table in (one, other))
        if one[name].type == pa.float64():
            np.testing.assert_allclose(ones, others, rtol=1e-12, atol=0, err_msg=name)
        else:
            assert ones.equals(others)


@pytest.mark.parametrize("seconds", [APART // SECOND, 3600])
def test_roll_ups_of_before_are_read_alike(
    lakes: tuple[Lake, Lake], seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, old = lakes
    policy = f"raw:1d,{seconds}s:forever"
    kept(small, policy, DAYS + 2)
    with monkeypatch.context() as patched:
        patched.setattr(rolling, "packed", whole)
        kept(old, policy, DAYS + 2)
    alike(parts_in(small, seconds), parts_in(old, seconds))
    for lake in lakes:  # also where a new roll-up is made of an old one
        add_late(lake)
        kept(lake, policy, DAYS + 2)
    alike(parts_in(small, seconds), parts_in(old, seconds))
    assert 7.0 in parts_in(small, seconds)["power_watts_min"].to_pylist()


@pytest.mark.parametrize("seconds", [APART // SECOND, 3600])
def test_what_is_left_out_comes_back_to_the_last_bit(
    lakes: tuple[Lake, Lake], seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, _ = lakes
    monkeypatch.setattr(rolling, "packed", whole)
    kept(lake, f"raw:1d,{seconds}s:forever", DAYS + 2)
    columns = list(sampled(lake.columns("meter")))
    stored = pa.concat_tables(map(pq.read_table, lake.parts(f"rollup_{seconds}s_meter")))
    assert len(stored) > 100
    with new_connection() as connection:
        connection.register("stored", stored)
        small = connection.sql(f"select {_listed(columns, packed)} from stored").to_arrow_table()
        connection.register("small", small)
        back = connection.sql(f"select {_listed(columns, unpacked)} from small").to_arrow_table()
    assert sum(column.null_count for column in small.columns) >= sum(column.null_count for column in back.columns)
    assert back.equals(stored.select(back.column_names).cast(back.schema))


def _listed(columns: Sequence[Column], of: Callable[[Column], Mapping[str, str]]) -> str:
    return ", ".join(f'{sql} as "{part}"' for column in columns for part, sql in of(column).items())


def test_a_step_of_one_sample_has_one_number(lakes: tuple[Lake, Lake]) -> None:
    lake, _ = lakes
    seconds = APART // SECOND // 2
    kept(lake, f"raw:1d,{seconds}s:forever", DAYS + 2)
    [part, *_] = lake.parts(f"rollup_{seconds}s_meter")
    table = pq.read_table(part)
    for name in ("power_watts", "heat_celsius"):
        assert table[f"{name}_min"].null_count < len(table) / 2
        assert {table[f"{name}_{kind}"].null_count for kind in ("sum", "max")} == {len(table)}
    rates = table["reset_total_growth"]
    assert rates.null_count < len(table) / 2
    assert {table[f"reset_total_{kind}"].null_count for kind in ("sum", "min", "max")} == {len(table)}
