import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crosswind.data.lake.lake import Lake, arrow_schema, to_table
from crosswind.data.lake.storage import LocalStorage
from crosswind.data.schema.errors import InvalidInputError, MalformedError
from crosswind.data.schema.metric import Column, Kind, MetricSet, Scalar
from crosswind.data.schema.steps import COLLECTIVE, STEP
from crosswind.data.store.store import Store

DAY = 86_400_000_000_000
TIME = Column("ts_ns", "time", Kind.KEY)
NODE = Column("node", "host", Kind.KEY, "string")
WAIT = Column("wait_seconds", "waiting", unit="s", scale=1e-9)
BYTES = Column("sent_bytes_total", "sent", Kind.COUNTER, "uint64", "bytes", 1024)
UP = Column("up", "whether it answered", dtype="bool")
NEW = MetricSet("link", "a link", (TIME, NODE, WAIT, BYTES, UP), version=2)
OLD = MetricSet("link", "a link, as an older agent knew it", (TIME, NODE, WAIT))
IN_A_FOLDER = pytest.mark.parametrize("lake", ["folder"], indirect=True)  # of files as they are there
Rows = Mapping[str, Sequence[Scalar]]


@pytest.fixture(params=["folder", "bucket"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """An empty lake, once in a folder and once in an object store."""
    if request.param == "folder":
        return Lake(tmp_path / "lake")
    store: Store = request.getfixturevalue("store")
    return store.lake


def put(lake: Lake, part: str, metric_set: MetricSet, rows: Rows) -> list[Path]:
    return lake.append(part, to_table(metric_set, rows))


def answer(lake: Lake, sql: str) -> list[tuple[object, ...]]:
    with lake.connect() as connection:
        return connection.execute(sql).fetchall()


def test_rows_come_back_in_base_units_with_null_for_missing(lake: Lake) -> None:
    rows = {
        "ts_ns": [1, 2],
        "node": ["ñ1", None],
        "wait_seconds": [1_500_000_000, None],
        "sent_bytes_total": [2**64 - 1, 3],
        "up": [True, None],
    }
    put(lake, "p", NEW, rows)
    assert answer(lake, "select * from link order by ts_ns") == [
        (1, "ñ1", 1.5, (2**64 - 1) * 1024.0, True),
        (2, None, None, 3072.0, None),
    ]


def test_an_answer_of_numbers_alone_has_nan_for_missing(lake: Lake) -> None:
    put(lake, "p", NEW, {"ts_ns": [1, 2], "wait_seconds": [1_500_000_000, None], "up": [True, None]})
    columns = lake.arrays("select ts_ns, wait_seconds, up from link where ts_ns >= ? order by ts_ns", [1])
    assert {name: column.dtype for name, column in columns.items()} == dict.fromkeys(columns, np.float64)
    np.testing.assert_array_equal(list(columns.values()), [[1, 2], [1.5, np.nan], [1, np.nan]])


@IN_A_FOLDER
def test_one_part_a_day_sorted_by_place_and_time(lake: Lake) -> None:
    paths = put(lake, "p", OLD, {"ts_ns": [DAY + 2, 5, DAY + 1, DAY], "node": ["b", "a", "a", "b"]})
    assert sorted(path.relative_to(lake.root).as_posix() for path in paths) == [
        "set=link/date=1970-01-01/part-p.parquet",
        "set=link/date=1970-01-02/part-p.parquet",
    ]
    assert pq.read_table(sorted(paths)[1], columns=["node", "ts_ns"]).to_pylist() == [
        {"node": "a", "ts_ns": DAY + 1},
        {"node": "b", "ts_ns": DAY},
        {"node": "b", "ts_ns": DAY + 2},
    ]


def test_the_same_part_again_doubles_nothing(lake: Lake) -> None:
    for _ in range(2):
        put(lake, "p", OLD, {"ts_ns": [1, 2]})
    assert answer(lake, "select count(*) from link") == [(2,)]


@pytest.mark.parametrize("order", [(NEW, OLD), (OLD, NEW)])
def test_columns_that_only_some_agents_know_are_always_there(lake: Lake, order: tuple[MetricSet, ...]) -> None:
    for number, metric_set in enumerate(order):
        row: dict[str, list[Scalar]] = {"ts_ns": [metric_set.version], "wait_seconds": [10]}
        if metric_set is NEW:
            row["sent_bytes_total"] = [1]
        put(lake, f"p{number}", metric_set, row)
    rows = answer(lake, "select ts_ns, wait_seconds, sent_bytes_total, up from link order by ts_ns")
    assert rows == [(1, 1e-8, None, None), (2, 1e-8, 1024.0, None)]


@IN_A_FOLDER
def test_columns_outlive_the_rows_that_had_them(lake: Lake) -> None:
    [newest] = put(lake, "p0", NEW, {"ts_ns": [1]})
    put(lake, "p1", OLD, {"ts_ns": [2]})
    newest.unlink()  # retention
    assert answer(lake, "select ts_ns, sent_bytes_total from link") == [(2, None)]


def test_sets_that_crosswind_itself_asks_for_can_be_queried_before_anything_is_stored(lake: Lake) -> None:
    assert lake.sets() == []
    assert answer(lake, "select count(*), sum(tail_seconds) from step") == [(0, None)]
    assert list(lake.frame("select * from collective").columns) == [column.name for column in COLLECTIVE.columns]


def test_a_probe_with_fewer_columns_leaves_those_that_queries_need(lake: Lake) -> None:
    older = replace(STEP, columns=tuple(column for column in STEP.columns if column.name != "tail_seconds"))
    put(lake, "p", older, {"ts_ns": [1], "run_id": ["r"]})
    assert answer(lake, "select run_id, tail_seconds from step") == [("r", None)]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (replace(WAIT, dtype="float64"), "link.wait_seconds: float64 x 1e-09, but what is stored is int64 x 1e-09"),
        (replace(WAIT, scale=1e-6), "link.wait_seconds: int64 x 1e-06, but what is stored is int64 x 1e-09"),
        (replace(BYTES, dtype="int64"), "link.sent_bytes_total: int64 x 1024, but what is stored is uint64 x 1024"),
    ],
)
def test_a_set_that_redefines_a_stored_column_is_refused_and_nothing_changes(
    lake: Lake, column: Column, message: str
) -> None:
    put(lake, "p0", NEW, {"ts_ns": [1], "wait_seconds": [5], "sent_bytes_total": [1]})
    put(lake, "p1", OLD, {"ts_ns": [2]})  # the column that is redefined may be one that the newest part lacks
    before = answer(lake, "select * from link order by ts_ns")
    with pytest.raises(MalformedError, match=message.replace(".", r"\.")):
        put(lake, "p2", MetricSet("link", "", (TIME, column)), {"ts_ns": [3]})
    assert answer(lake, "select * from link order by ts_ns") == before


def test_a_set_of_ours_cannot_be_redefined_even_as_the_first(lake: Lake) -> None:
    with pytest.raises(MalformedError, match=r"step\.rank: string"):
        put(lake, "p", MetricSet("step", "", (TIME, Column("rank", "", dtype="string"))), {"ts_ns": [1]})


def test_a_set_may_not_contradict_one_that_is_stored_with_it(lake: Lake) -> None:
    other = MetricSet("link", "", (TIME, replace(WAIT, scale=1.0)))
    lake.check(other)
    with pytest.raises(MalformedError, match="wait_seconds"):
        lake.check(other, others=[OLD])


def test_a_set_that_another_server_stores_first_meanwhile_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    between = [lambda: put(Lake(tmp_path), "p", OLD, {"ts_ns": [1], "node": ["n"], "wait_seconds": [1]})]
    usual = LocalStorage.parts

    def parts(storage: LocalStorage, name: str, *about: Any) -> list[Path]:
        while between:
            [part] = between.pop()()
            pq.write_table(pq.read_table(part).replace_schema_metadata(), part)  # as what waited together has none
        return usual(storage, name, *about)

    monkeypatch.setattr(LocalStorage, "parts", parts)
    Lake(tmp_path).check(NEW)
    assert not between


@pytest.mark.parametrize("name", ["select", "order", "table", "main", "duckdb_views", "step_", "null"])
def test_names_that_mean_something_in_sql_are_only_names(lake: Lake, name: str) -> None:
    columns = (TIME, Column("select", "", scale=2.0), Column("from", "", dtype="string"))
    put(lake, "p", MetricSet(name, "", columns), {"ts_ns": [1], "select": [2], "from": ["x"]})
    assert answer(lake, f'select "select", "from" from main."{name}"') == [(4.0, "x")]
    assert lake.frame(f'select "from" from main."{name}"')["from"].tolist() == ["x"]


def test_a_folder_with_hostile_characters_holds_a_lake(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "o'brien's [data]*?")
    put(lake, "p", OLD, {"ts_ns": [1]})
    assert answer(lake, "select count(*) from link") == [(1,)]


@IN_A_FOLDER
def test_a_damaged_file_is_named_and_leaves_queries_of_other_sets_alone(lake: Lake) -> None:
    put(lake, "p", OLD, {"ts_ns": [1]})
    put(lake, "p", replace(OLD, name="other"), {"ts_ns": [1]})
    (lake.root / "set=other" / "date=1970-01-01" / "part-bad.parquet").write_bytes(b"PAR1 torn")
    assert lake.frame("select count(*) as rows from link")["rows"].tolist() == [1]
    with pytest.raises(MalformedError, match=r"lake .* cannot be read: .*part-bad\.parquet"):
        lake.frame("select count(*) from other")


def test_folders_that_are_no_sets_are_not_looked_into(lake: Lake) -> None:
    put(lake, "p", OLD, {"ts_ns": [1]})
    stray = lake.root / "set=x; drop" / "date=1970-01-01"
    stray.mkdir(parents=True)
    (stray / "part-p.parquet").touch()
    (lake.root / "set=empty").mkdir()
    assert lake.sets() == ["link"]
    assert answer(lake, "select count(*) from link") == [(1,)]


@pytest.mark.parametrize("part", ["", "../p", "a/b", "p.parquet", "x" * 81])
def test_a_part_is_a_plain_name(lake: Lake, part: str) -> None:
    with pytest.raises(InvalidInputError, match="expected letters, digits, - and _"):
        put(lake, part, OLD, {"ts_ns": [1]})


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({}, "expected a ts_ns in every row"),
        ({"ts_ns": [1, None]}, "expected a ts_ns in every row"),
        ({"ts_ns": [1], "colour": ["red"]}, "unknown columns colour"),
        ({"ts_ns": [1, 2], "node": ["a"]}, "columns of unequal length"),
        ({"ts_ns": [1], "wait_seconds": ["soon"]}, r"link\.wait_seconds: expected int64"),
        ({"ts_ns": [1], "wait_seconds": [1.5]}, r"link\.wait_seconds: expected int64"),
        ({"ts_ns": [2**63]}, r"link\.ts_ns: expected int64"),
        ({"ts_ns": [1], "sent_bytes_total": [-1]}, r"link\.sent_bytes_total: expected uint64"),
        ({"ts_ns": [1], "node": [5]}, r"link\.node: expected string"),
    ],
)
def test_rows_of_another_shape_are_refused_by_column(rows: Rows, message: str) -> None:
    with pytest.raises(MalformedError, match=message):
        to_table(NEW, rows)


@pytest.mark.parametrize("columns", [(NODE,), (replace(TIME, dtype="string"),)])
def test_a_set_without_a_time_is_refused(lake: Lake, columns: tuple[Column, ...]) -> None:
    with pytest.raises(MalformedError, match="expected an int64 column ts_ns"):
        lake.check(MetricSet("link", "", columns))


def test_a_table_that_says_nothing_of_its_set_is_refused(lake: Lake) -> None:
    with pytest.raises(InvalidInputError, match="make it with to_table"):
        lake.append("p", pa.table({"ts_ns": [1]}))


def test_times_before_1970_and_at_the_end_of_the_clock_are_kept(lake: Lake) -> None:
    times = [-(2**63), -1, 2**63 - 1]
    put(lake, "p", OLD, {"ts_ns": times})
    assert [row[0] for row in answer(lake, "select ts_ns from link order by ts_ns")] == times


@IN_A_FOLDER
def test_what_a_killed_writer_left_is_no_part_and_goes_with_the_next_writing(lake: Lake) -> None:
    [path] = put(lake, "p", OLD, {"ts_ns": [1]})
    half = lake.root / ".writing" / f"{'.'.join(path.relative_to(lake.root).parts)}.0a1b2c3d"
    half.write_bytes(b"PAR1")
    assert answer(lake, "select count(*) from link") == [(1,)]
    put(lake, "p", OLD, {"ts_ns": [1]})
    assert list(half.parent.iterdir()) == []
    assert list(path.parent.iterdir()) == [path]


def test_files_carry_units_and_the_whole_set_for_other_readers() -> None:
    schema = arrow_schema(NEW)
    field = schema.field("sent_bytes_total").metadata
    assert (field[b"unit"], field[b"scale"], field[b"kind"]) == (b"bytes", b"1024", b"counter")
    assert MetricSet.from_json(json.loads(schema.metadata[b"crosswind.set"])) == NEW


def test_a_window_before_1970_misses_no_row(lake: Lake) -> None:
    put(lake, "p", OLD, {"ts_ns": [-DAY - 1, -1, 5]})
    rows = lake.frame("select ts_ns from link where ts_ns between -9 and -1", within=(-9, -1))
    assert rows["ts_ns"].tolist() == [-1]
