import json
from pathlib import Path

import pytest

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.metric import NODE_KEYS, Column, Kind, MetricSet
from crosswind.data.store.store import Store
from crosswind.ingest.load.batch_builder import BatchBuilder, parse_quickly
from crosswind.ingest.load.load import Loaded, load_segment
from crosswind.ingest.spool.segment import SweepRows, encode_frame, parse_loosely
from crosswind.ingest.spool.segment_reader import Unpacked

LINK = MetricSet(
    "link",
    "a link",
    (
        *NODE_KEYS,
        Column("sent_bytes_total", "bytes", Kind.COUNTER, "uint64"),
        Column("load_ratio", "share", dtype="float64"),
        Column("state", "up or down", Kind.FACT, "string"),
        Column("is_up", "whether", dtype="bool"),
    ),
)
SETS = {"link": LINK}
ROW = ["eth0", 2**64 - 1, 0.5, "up", True]


def samples(rows: object, **other: object) -> bytes:
    frame = {"kind": "samples", "set": "link", "ts_ns": 7, "mono_ns": 5, "node": "n1", "boot_id": "b", "rows": rows}
    return json.dumps(frame | other, separators=(",", ":")).encode()


def builder(*payloads: bytes) -> BatchBuilder:
    rows = BatchBuilder(lambda *_: None)
    for payload in payloads:
        frame = parse_quickly(payload, SETS)
        assert isinstance(frame, SweepRows)
        rows.add(frame)
    return rows


@pytest.mark.parametrize(
    "payload",
    [
        samples([ROW]),
        samples([ROW, ["eth1", None, None, None, None]]),
        samples([ROW], boot_id=None),
        samples([["eth0", -0.0, 1, "ü\u2028", False]]),
        samples([ROW], later="a field of a newer agent"),
        samples([[]]),
    ],
)
def test_the_quick_way_reads_what_the_slow_way_reads(payload: bytes) -> None:
    assert parse_quickly(payload, SETS) == parse_loosely(payload, SETS)


@pytest.mark.parametrize(
    "payload",
    [
        samples([]),
        samples("rows"),
        samples([7]),
        samples([ROW], set="other"),
        samples([ROW]).replace(b"0.5", b"NaN"),
        samples([ROW])[:-3],
        b'{"kind":"samples"' + b'{"a":' * 3000,
    ],
)
def test_the_quick_way_refuses_what_the_slow_way_refuses(payload: bytes) -> None:
    with pytest.raises(MalformedError) as slow:
        parse_loosely(payload, SETS)
    with pytest.raises(MalformedError) as quick:
        parse_quickly(payload, SETS)
    assert str(quick.value) == str(slow.value)


def test_rows_of_all_sweeps_become_one_exact_table_with_null_for_missing() -> None:
    [table] = builder(samples([ROW, ["eth1", None, 1, None, None]]), samples([ROW], ts_ns=8, boot_id=None)).tables()
    first = {"ts_ns": 7, "node": "n1", "device": "eth0", "boot_id": "b", "mono_ns": 5}
    values = {"sent_bytes_total": 2**64 - 1, "load_ratio": 0.5, "state": "up", "is_up": True}
    missing = {"sent_bytes_total": None, "load_ratio": 1.0, "state": None, "is_up": None}
    assert table.to_pylist() == [
        first | values,
        first | {"device": "eth1"} | missing,
        first | {"ts_ns": 8, "boot_id": None} | values,
    ]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (["eth0", -1, 0.5, "up", True], "link.sent_bytes_total: expected uint64"),
        (["eth0", 2**64, 0.5, "up", True], "link.sent_bytes_total: expected uint64"),
        (["eth0", 1.0, 0.5, "up", True], "column sent_bytes_total: ['float'] among the values, expected uint64"),
        (["eth0", True, 0.5, "up", True], "column sent_bytes_total: ['bool'] among the values, expected uint64"),
        (["eth0", 1, "0.5", "up", True], "column load_ratio: ['str'] among the values, expected float64"),
        (["eth0", 1, 0.5, 3, True], "column state: ['int'] among the values, expected string"),
        (["eth0", 1, 0.5, "\ud800", True], "link.state: expected string"),
        (["eth0", 1, 0.5, "up"], "4 values in a row, expected 5"),
        (["eth0", 1, 0.5, "up", True, 3], "6 values in a row, expected 5"),
        ([3, 1, 0.5, "up", True], "column device: ['int'] among the values, expected string"),
    ],
)
def test_a_sweep_with_a_value_of_another_type_is_refused_and_the_others_kept(row: list[object], reason: str) -> None:
    rows = builder(samples([ROW]), samples([row], ts_ns=8), samples([ROW], ts_ns=9))
    [table] = rows.tables()
    assert table["ts_ns"].to_pylist() == [7, 9]
    [refused] = rows.refused
    assert reason in refused


def test_a_number_beyond_what_a_float_holds_is_refused() -> None:
    rows = builder(samples([ROW]).replace(b"0.5", b"1e999"))
    assert (rows.tables(), len(rows.refused)) == ([], 1)
    assert "expected finite numbers" in rows.refused[0]


def test_a_sweep_that_is_refused_costs_no_other_and_the_segment_is_not_wholly_understood(tmp_path: Path) -> None:
    frames = [{"kind": "set", "set": LINK.as_json()}]
    frames += [json.loads(samples([row], ts_ns=number)) for number, row in enumerate([ROW, ["eth0"], ROW])]
    segment = Unpacked("00000000000000000001-0123abcd.agent.n1.segment", b"".join(map(encode_frame, frames)))
    loaded = Loaded()
    with Store.open(tmp_path) as store:
        assert load_segment(store, segment, loaded, quarantine=tmp_path / "quarantine") is False
        assert store.lake.frame("select ts_ns from link order by ts_ns")["ts_ns"].tolist() == [0, 2]
    assert loaded.problems == [f"{segment.name}: samples of link: 1 values in a row, expected 5"]
    assert (tmp_path / "quarantine").read_bytes() == segment.content


def test_more_values_than_go_at_once_are_built_in_parts() -> None:
    payloads = [samples([ROW] * 100, ts_ns=number) for number in range(700)]  # 630 000 values
    [table] = builder(*payloads).tables()
    assert (len(table), table["ts_ns"].num_chunks) == (70_000, 2)
