"""Kineto's reader gives exact nanoseconds, and bounds and names what is odd."""

import gzip
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.ingest.readers.traces.chrome import document, kernel, read_text, step
from tests.needs import needs_data

from crosswind.data.schema.errors import MalformedError
from crosswind.data.traces.naming import UNKNOWN, operation_of
from crosswind.data.traces.trace import NONE, Kind, RankTrace
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.traces import kineto
from crosswind.ingest.readers.traces.kineto import KinetoReader
from crosswind.models.traces.breakdown import breakdown
from crosswind.models.traces.collectives import collectives

RECORDED = Path(__file__).parents[2] / "recorded"
SHARED = Path(__file__).parents[5] / "shared/data/traces"


def read(path: Path) -> RankTrace:
    """Return the only rank of a file."""
    [trace] = KinetoReader().read(path, Report(str(path), "kineto"))
    return trace


def test_times_since_1970_keep_their_nanoseconds(tmp_path: Path) -> None:
    text = '{"schemaVersion":1,"traceEvents":[%s]}'
    event = '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1731000000123456.%03d,"dur":0.007}'
    trace, _ = read_text(tmp_path / "a.json", text % ",".join(event % ns for ns in (1, 2, 999)))
    assert (trace.events.begin_ns - 1731000000123456000).tolist() == [1, 2, 999]
    assert trace.events.duration_ns.tolist() == [7, 7, 7]


def test_times_as_texts_are_times(tmp_path: Path) -> None:
    trace, report = read_text(tmp_path / "a.json", document([kernel("12.5", "1.25"), kernel(20, 1e1)]))
    assert trace.events.begin_ns.tolist() == [12500, 20000]
    assert trace.events.duration_ns.tolist() == [1250, 10000]
    assert report.skipped == 0


def test_the_base_of_times_is_added(tmp_path: Path) -> None:
    trace, _ = read_text(tmp_path / "a.json", document([kernel(1.5, 1)], baseTimeNanoseconds=1_700_000_000_000_000_000))
    assert trace.events.begin_ns.tolist() == [1_700_000_000_000_001_500]


def test_ranges_of_begin_and_end_nest(tmp_path: Path) -> None:
    events = [
        {"ph": phase, "name": name, "pid": 1, "tid": 1, "ts": ts}
        for phase, name, ts in (
            ("B", "outer", 0),
            ("B", "inner", 2),
            ("E", "", 3),
            ("E", "", 10),
            ("E", "", 11),
            ("B", "open", 12),
        )
    ]
    trace, _ = read_text(tmp_path / "a.json", json.dumps(events))
    assert list(zip(trace.names_of(trace.events), trace.events.duration_ns.tolist(), strict=True)) == [
        ("outer", 10_000), ("inner", 1000)]  # fmt: skip
    assert trace.notes == (
        "1 ends of ranges without a begin, or asynchronous ranges, are not analysed",
        "1 ranges never end",
        "2 events are of another tool's categories: they are ranges, and no work",
    )


def test_collectives_have_sequence_communicator_and_bytes(tmp_path: Path) -> None:
    arguments = {"Collective name": "allreduce", "In msg nelems": 10, "Out msg nelems": 10, "dtype": "Float"}
    events = [
        kernel(0, 1, "ncclDevKernel_AllReduce", **arguments, **{"Process Group Name": "1", "Seq": 4}),
        kernel(5, 1, "ncclDevKernel_AllReduce", **{"Comms Id": 77, "Seq": 5}),
    ]
    trace, _ = read_text(tmp_path / "a.json", document(events))
    assert [trace.groups[code].name for code in trace.events.group] == ["1", "77"]
    assert trace.events.sequence.tolist() == [4, 5]
    assert trace.events.bytes.tolist() == [40, -1]


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_blocks_end_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, separators: tuple[str, str]) -> None:
    monkeypatch.setattr("crosswind.ingest.readers.traces.json_events.document.__kwdefaults__", {"block_bytes": 300})
    events = [kernel(number, 0.5, '},{ "', note=[{"a": 1}, {"b": 2}]) for number in range(100)]
    text = json.dumps(json.loads(document(events, 3)), separators=separators)
    trace, _ = read_text(tmp_path / "a.json", text)
    assert trace.events.begin_ns.tolist() == [1000 * number for number in range(100)]


def test_a_cut_off_trace_gives_what_is_whole(tmp_path: Path) -> None:
    text = document([kernel(number, 1) for number in range(50)], 0)
    trace, report = read_text(tmp_path / "a.json", text[: len(text) * 2 // 3])
    assert 30 < len(trace.events) < 50
    assert "breaks off" in report.damage


NO_JSON = ["NaN", '"\\ud800"', '"\\x"', '"\xff"', "[" * 100_000 + "]" * 100_000, '[{"a":1}, {"b": }]']


@pytest.mark.parametrize("block_bytes", [300, 1 << 20])
@pytest.mark.parametrize("value", NO_JSON)
@pytest.mark.parametrize("place", [0, 5, 99])
def test_an_entry_that_is_no_json_costs_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, place: int, block_bytes: int
) -> None:
    defaults = "crosswind.ingest.readers.traces.json_events.document.__kwdefaults__"
    monkeypatch.setattr(defaults, {"block_bytes": block_bytes})
    events = [json.dumps(kernel(number, 1, note=[{"a": 1}, {"b": 2}])) for number in range(100)]
    events[place] = events[place].replace('"device": 0', f'"device": {value}')
    path = tmp_path / "a.json"
    path.write_bytes(f'{{"traceEvents": [{", ".join(events)}], "host_name": "n1"}}'.encode("latin-1"))
    report = Report(str(path), "kineto")
    [trace] = KinetoReader().read(path, report)
    lost = sorted({1000 * number for number in range(100)} - set(trace.events.begin_ns.tolist()))
    assert len(lost) <= 8
    assert 1000 * place in lost
    assert report.skipped >= 1


def test_members_after_the_events_count(tmp_path: Path) -> None:
    text = '{"schemaVersion":1,"traceEvents":%s,"distributedInfo":{"rank":3,"world_size":8}}'
    trace, _ = read_text(tmp_path / "a.json", text % json.dumps([kernel(0, 1)]))
    assert (trace.rank, trace.world_size) == (3, 8)


HOSTILE = [
    ({"ts": 1e300}, "no time"),
    ({"dur": -5}, "no time"),
    ({"ts": "tomorrow"}, "no time"),
    ({"ts": "1e999999999"}, "no time"),
    ({"ts": None}, "no time"),
    ({"args": [1, 2]}, "args"),
    ({"ph": 7}, "ph"),
]


@pytest.mark.parametrize(("members", "reason"), HOSTILE)
def test_a_hostile_entry_is_reported_and_others_are_read(
    tmp_path: Path, members: dict[str, object], reason: str
) -> None:
    trace, report = read_text(tmp_path / "a.json", document([kernel(1, 1), kernel(2, 1) | members, kernel(3, 1)]))
    assert trace.events.begin_ns.tolist() == [1000, 3000]
    assert report.skipped == 1
    assert reason in report.quoted[0].reason


ODD = [
    {"name": None},
    {"name": {"a": 1}},
    {"pid": [1]},
    {"tid": {}},
    {"cat": "kernel", "args": {"correlation": 1 << 70, "stream": {}, "bytes": "x", "External id": -3}},
    {"args": {"Process Group Name": [1], "Process Group Ranks": "[0, x]", "Group size": "no", "Seq": 1.5}},
]


@pytest.mark.parametrize("members", ODD)
def test_an_odd_entry_is_read_without_what_is_odd(tmp_path: Path, members: dict[str, object]) -> None:
    trace, _ = read_text(tmp_path / "a.json", document([kernel(1, 1), kernel(2, 1) | members]))
    assert len(trace.events) == 2


@pytest.mark.parametrize(
    "text", ["{", '{"traceEvents": 3}', '{"traceEvents": []}', "[]", "[" * 100000, '{"a": %s' % ("[" * 99999)]
)
def test_no_trace_is_an_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(MalformedError, match=r"a\.json"):
        read_text(tmp_path / "a.json", text)


def test_a_bomb_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json.gz"
    with gzip.open(path, "wt") as stream:
        stream.write('{"schemaVersion":1,"traceEvents":[' + " " * (80 << 20))
    with pytest.raises(MalformedError, match=r"a\.json\.gz: no end of an event"):
        read(path)
    with pytest.raises(MalformedError, match="more than 1048576 bytes"):
        list(KinetoReader(limit=1 << 20).read(path, Report(str(path), "kineto")))
    monkeypatch.setattr(kineto, "EVENTS_LIMIT", 10)
    path.write_bytes(gzip.compress(document([kernel(0, 1)] * 11).encode()))
    with pytest.raises(MalformedError, match="more than 10 events"):
        read(path)
    monkeypatch.setattr(kineto, "BEGUN_LIMIT", 10)
    path.write_bytes(gzip.compress(document([kernel(0, 1) | {"ph": "B"}] * 11).encode()))
    with pytest.raises(MalformedError, match="more than 10 ranges that begin and do not end"):
        read(path)
    monkeypatch.setattr("crosswind.ingest.readers.traces.json_events.SKIPPED_LIMIT", 10)
    path.write_bytes(gzip.compress(document([{}] * 500_000).encode()))
    with pytest.raises(MalformedError, match=r"\d+ entries that are no events; too many"):
        read(path)


def test_zstd_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a.json.zst"
    with pa.output_stream(str(path), compression="zstd") as stream:
        stream.write(document([kernel(0, 1), step(1, 0, 5)], 1).encode())
    assert KinetoReader().recognises(path, path.read_bytes())
    assert len(read(path).events) == 2


@pytest.mark.parametrize("name", ["ddp-gloo-world2-rank1", "fsdp2-gloo-world2-rank0", "ddp-nccl-world1-rank0"])
def test_recorded_traces_are_read_whole(name: str) -> None:
    trace = read(RECORDED / "kineto_cuda" / f"{name}.json.gz")
    assert trace.rank == int(name[-1])
    assert {Kind.KERNEL, Kind.CALL, Kind.OPERATOR, Kind.STEP} <= set(np.unique(trace.events.kind))


def test_a_trace_of_xla_in_chromes_format_has_device_work() -> None:
    trace = read(RECORDED / "xplane_cuda" / "two_steps.trace.json.gz")
    assert len(trace.events.on_device()) > 10


@needs_data(SHARED / "kineto")
def test_messages_of_gloo_are_messages() -> None:
    trace = read(SHARED / "kineto/gloo2/rank1_slow1.json.gz")
    assert set(trace.names_of(trace.events.of(Kind.MESSAGE))) == {"gloo:all_reduce"}


GENERIC = "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)"


@pytest.mark.parametrize(
    ("stated", "operation"),
    [("allreduce", "all_reduce"), ("_allgather_base", "all_gather"), ("send", "send_receive"), ("x", UNKNOWN)],
)
def test_a_generic_kernel_is_named_by_the_collective_that_is_stated(
    tmp_path: Path, stated: str, operation: str
) -> None:
    arguments = {"Collective name": stated, "In msg nelems": 100, "dtype": "BFloat16", "Group size": 2}
    events = [kernel(1, 2, GENERIC, **arguments), kernel(4, 2, GENERIC)]
    trace, _ = read_text(tmp_path / "t.json", document(events))
    matched = collectives([trace])
    assert matched.operation == (operation, UNKNOWN)
    assert matched.bytes.tolist() == [200, NONE]
    assert trace.events.kind.tolist() == [Kind.COLLECTIVE] * 2


@pytest.mark.parametrize("stated", [{"Collective name": "allreduce"}, {"Process Group Name": "1"}, {"Comms Id": 7}])
def test_a_kernel_of_an_unknown_name_is_a_collective_where_the_trace_says_so(
    tmp_path: Path, stated: dict[str, object]
) -> None:
    trace, _ = read_text(tmp_path / "t.json", document([kernel(1, 2, "vendorcomm_k7", **stated), kernel(4, 2)]))
    assert trace.events.kind.tolist() == [Kind.COLLECTIVE, Kind.KERNEL]
    [operation] = collectives([trace]).operation
    assert operation == ("all_reduce" if "Collective name" in stated else UNKNOWN)


@needs_data(SHARED / "kineto")
def test_generic_kernels_of_a_recorded_trace_of_rocm_are_named() -> None:
    trace = read(SHARED / "kineto/mi300_resnet_rank0of8.json.gz")
    named = Counter(operation_of(name) for name in trace.names_of(trace.events.of(Kind.COLLECTIVE)))
    assert named == {"all_reduce": 6, "broadcast": 6, UNKNOWN: 5}  # the last were launched before it began


@needs_data(SHARED / "kineto")
def test_without_what_was_launched_before_it_a_trace_of_rocm_equals_hta() -> None:
    result = breakdown(read(SHARED / "kineto/mi300_resnet_rank0of8.json.gz").launched_within())
    parts = result.host_bound_ns + result.idle_ns, result.compute_ns + result.overlapped_ns
    expected = pytest.approx((283.535, 19234.094, 36999.974, 56517.603), abs=0.002)
    assert tuple(ns / 1000 for ns in (*parts, result.exposed_ns + result.memory_ns, result.span_ns)) == expected
    assert round(100 * result.overlap_share, 2) == 25.25
