"""An export of Nsight Systems gives a trace for each process on each device, and hostile files are errors."""

import contextlib
import random
import sqlite3
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from tests.needs import needs_data

from crosswind.data.schema.errors import MalformedError
from crosswind.data.traces.trace import NONE, Kind, RankTrace
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.traces import nsys
from crosswind.ingest.readers.traces.files import read_traces
from crosswind.ingest.readers.traces.nsys import NsysReader

SHARED = Path(__file__).parents[5] / "shared/data/traces/nsys"
FIRST, SECOND = 5 << 24, 6 << 24
SCHEMA = """
create table StringIds (id integer primary key, value text);
create table TARGET_INFO_SYSTEM_ENV (name text, value text);
create table TARGET_INFO_SESSION_START_TIME (utcEpochNs integer);
create table ThreadNames (nameId integer, globalTid integer /* Serialized GlobalId */);
create table CUPTI_ACTIVITY_KIND_KERNEL (start integer, end integer, deviceId integer, streamId integer,
  correlationId integer, globalPid integer, demangledName integer);
create table CUPTI_ACTIVITY_KIND_MEMCPY (start integer, end integer, deviceId integer, streamId integer,
  correlationId integer, globalPid integer, copyKind integer, bytes integer);
create table CUPTI_ACTIVITY_KIND_RUNTIME (start integer, end integer, globalTid integer, correlationId integer,
  nameId integer);
create table NVTX_EVENTS (start integer, end integer, eventType integer, globalTid integer, text text, textId integer,
  jsonText text);
"""


def export(path: Path) -> Path:
    """An export with two processes on a device each, and one that has none."""
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.executescript(SCHEMA)
        texts = ["gemm", "ncclDevKernel_AllReduce_Sum", "cudaLaunchKernel_v7000", "main", "cudaStreamSynchronize_v3020"]
        database.executemany("insert into StringIds values (?, ?)", enumerate(texts, 1))
        database.execute("insert into TARGET_INFO_SYSTEM_ENV values ('Hostname', 'node7')")
        database.execute("insert into TARGET_INFO_SESSION_START_TIME values (1000000)")
        database.execute("insert into ThreadNames values (4, ?)", [FIRST | 50])
        kernels = [(10, 30, 0, 7, 1, FIRST, 1), (20, 60, 0, 9, 2, FIRST, 2), (15, 25, 1, 7, 1, SECOND, 1)]
        database.executemany("insert into CUPTI_ACTIVITY_KIND_KERNEL values (?, ?, ?, ?, ?, ?, ?)", kernels)
        database.execute("insert into CUPTI_ACTIVITY_KIND_MEMCPY values (70, 80, 0, 7, null, ?, 1, 4096)", [FIRST])
        calls = [(1, 2, FIRST | 50, 1, 3), (3, 4, FIRST | 50, 2, 3), (5, 9, SECOND | 60, 1, 5), (5, 9, 7 << 24, 1, 5)]
        database.executemany("insert into CUPTI_ACTIVITY_KIND_RUNTIME values (?, ?, ?, ?, ?)", calls)
        payload = '{"NCCL communicator ID": 77, "Message size [bytes]": 1024}'
        ranges = [
            (0, 100, 59, FIRST | 50, "aten::mm, op_id = 12, sizes = [[2]]", None, None),
            (0, 100, 59, FIRST | 50, None, 4, None),
            (0, 100, 59, FIRST | 50, "step 3", None, None),
            (2, 8, 59, FIRST | 50, "ncclAllReduce", None, payload),
            (2, 8, 75, FIRST | 50, "a domain", None, None),
            (9, None, 59, FIRST | 50, "open", None, None),
        ]
        database.executemany("insert into NVTX_EVENTS values (?, ?, ?, ?, ?, ?, ?)", ranges)
    return path


def read(path: Path) -> list[RankTrace]:
    """Return all ranks."""
    return list(NsysReader().read(path, Report(str(path), "nsys")))


def test_a_process_on_a_device_is_a_rank(tmp_path: Path) -> None:
    first, second = read(export(tmp_path / "a.sqlite"))
    assert Counter(Kind(kind).name for kind in first.events.kind) == {
        "KERNEL": 1, "COLLECTIVE": 1, "COPY": 1, "CALL": 2, "OPERATOR": 1, "ANNOTATION": 2, "STEP": 1,
    }  # fmt: skip
    assert Counter(Kind(kind).name for kind in second.events.kind) == {"KERNEL": 1, "SYNC": 1}
    assert first.node == "node7"
    assert first.span == (1_000_010, 1_000_080)
    [operator] = first.names_of(first.events.of(Kind.OPERATOR))
    assert (operator, first.events.of(Kind.OPERATOR).operator.tolist()) == ("aten::mm", [12])
    [copy] = first.events.of(Kind.COPY).bytes
    assert copy == 4096
    assert {place.label for place in first.places} == {"stream 7", "stream 9", "thread 50 (main)"}
    nccl = first.events.where(first.events.group != NONE)
    assert (first.names_of(nccl), nccl.bytes.tolist(), first.groups[0].name) == (["ncclAllReduce"], [1024], "77")


def test_a_packed_export_is_the_same(tmp_path: Path) -> None:
    path = export(tmp_path / "a.sqlite")
    packed = tmp_path / "a.sqlite.zst"
    with pa.output_stream(str(packed), compression="zstd") as stream:
        stream.write(path.read_bytes())
    assert NsysReader().recognises(packed, packed.read_bytes())
    assert [len(trace.events) for trace in read(packed)] == [len(trace.events) for trace in read(path)]


def test_a_packed_export_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "a.sqlite.zst"
    with pa.output_stream(str(packed), compression="zstd") as stream:
        stream.write(export(tmp_path / "a.sqlite").read_bytes() + bytes(1 << 22))
    monkeypatch.setattr(nsys, "LIMIT", 1 << 20)
    with pytest.raises(MalformedError, match=r"a\.sqlite\.zst: more than 1048576 bytes"):
        read(packed)


def test_an_export_without_a_device_is_its_processes(tmp_path: Path) -> None:
    path = export(tmp_path / "a.sqlite")
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("drop table CUPTI_ACTIVITY_KIND_KERNEL")
        database.execute("delete from CUPTI_ACTIVITY_KIND_MEMCPY")
    assert [len(trace.events) for trace in read(path)] == [6, 1, 1]


HOSTILE = [
    "update CUPTI_ACTIVITY_KIND_KERNEL set start = 'x', end = x'00ff', demangledName = 1e300",
    "update StringIds set value = x'ff00fe'",
    "update CUPTI_ACTIVITY_KIND_KERNEL set start = 9223372036854775807",
    "update CUPTI_ACTIVITY_KIND_KERNEL set streamId = null, deviceId = null, globalPid = null",
    "update NVTX_EVENTS set jsonText = '[NCCL', text = 'a, op_id = 99999999999999999999999'",
    "alter table CUPTI_ACTIVITY_KIND_KERNEL rename column demangledName to other",
    "alter table NVTX_EVENTS drop column globalTid",
    "drop table StringIds; create view StringIds as select 1 as id, load_extension('x') as value",
    "update TARGET_INFO_SESSION_START_TIME set utcEpochNs = 'now'",
]


@pytest.mark.parametrize("script", HOSTILE)
def test_hostile_values_are_read_or_are_an_error(tmp_path: Path, script: str) -> None:
    path = export(tmp_path / "a.sqlite")
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.executescript(script)
    with contextlib.suppress(MalformedError):
        assert read(path)


def test_damaged_pages_are_an_error_or_left_out(tmp_path: Path) -> None:
    content = bytearray(export(tmp_path / "a.sqlite").read_bytes())
    chance = random.Random(3)
    for number in range(60):
        damaged = bytearray(content)
        for _ in range(30):
            damaged[chance.randrange(100, len(damaged))] = chance.randrange(256)
        path = tmp_path / f"{number}.sqlite"
        path.write_bytes(damaged)
        with contextlib.suppress(MalformedError):
            read(path)


@needs_data(SHARED)
def test_an_export_of_two_gpus_is_two_ranks() -> None:
    traces = read_traces([SHARED / "mfu_2gpu_before.sqlite.zst"])
    assert [trace.rank for trace in traces] == [0, 1]
    assert [len(trace.events.of(Kind.COLLECTIVE)) for trace in traces] == [33, 33]
    assert sum(len(trace.events.on_device()) for trace in traces) == 4010 + 1020 + 269
    assert len(read_traces([SHARED / "h100_2gpu_1s.sqlite.zst"])) == 2
