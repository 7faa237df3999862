"""Chakra's execution traces: events begin when what they depend on has ended."""

import json
import struct
import tarfile
from pathlib import Path
from typing import Any

import pytest
from tests.needs import needs_data

from crosswind.data.schema.errors import MalformedError
from crosswind.data.traces.trace import Kind, RankTrace
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.traces.chakra import ChakraReader
from crosswind.ingest.readers.traces.files import read_traces

SHARED = Path(__file__).parents[5] / "shared/data/traces/chakra"
NODES: list[dict[str, Any]] = [
    {"Id": 4, "Name": "ncclKernel", "NodeType": 7, "runtime": 7, "data_deps": [3], "is_cpu_op": False, "comm_size": 64},
    {"Id": 2, "Name": "aten::mm", "NodeType": 4, "runtime": 10, "data_deps": [], "is_cpu_op": True},
    {"Id": 3, "Name": "gemm", "NodeType": 4, "runtime": 30, "data_deps": [2], "is_cpu_op": False},
    {"Id": 5, "Name": "relu", "NodeType": 4, "runtime": 5, "data_deps": [2], "is_cpu_op": False},
]


def read(path: Path) -> RankTrace:
    """Return the only rank of a file."""
    [trace] = ChakraReader().read(path, Report(str(path), "chakra"))
    return trace


def of_nodes(path: Path, nodes: object) -> RankTrace:
    """Write a graph and read it."""
    path.write_text(json.dumps({"workload_graph": nodes}))
    return read(path)


def message(*fields: tuple[int, int | bytes]) -> bytes:
    """A message of Protocol Buffers with small numbers and short texts."""
    parts = [
        bytes([number << 3, value]) if isinstance(value, int) else bytes([number << 3 | 2, len(value)]) + value
        for number, value in fields
    ]
    return b"".join(parts)


def framed(*messages: bytes) -> bytes:
    """Messages after one another, each after its length."""
    return b"".join(struct.pack("B", len(one)) + one for one in messages)


def test_events_begin_after_what_they_need_and_one_after_another_on_a_stream(tmp_path: Path) -> None:
    trace = of_nodes(tmp_path / "chakra.3.json", NODES)
    assert trace.rank == 3
    rows = zip(trace.names_of(trace.events), map(Kind, trace.events.kind), trace.events.begin_ns.tolist(), strict=True)
    assert list(rows) == [
        ("aten::mm", Kind.OPERATOR, 0),
        ("gemm", Kind.KERNEL, 10_000),
        ("ncclKernel", Kind.COLLECTIVE, 40_000),
        ("relu", Kind.KERNEL, 40_000),
    ]
    assert trace.events.of(Kind.COLLECTIVE).bytes.tolist() == [64]


def test_messages_are_read_with_their_own_begins(tmp_path: Path) -> None:
    is_cpu = message((1, b"is_cpu_op")) + b"\xd8\x01\x00"
    node = message((1, 9), (2, b"gemm"), (3, 4), (6, 50), (7, 20), (10, is_cpu))
    path = tmp_path / "a.et"
    path.write_bytes(framed(message((1, b"0.0.4")), node))
    assert ChakraReader().recognises(path, path.read_bytes())
    trace = read(path)
    assert (trace.events.begin_ns.tolist(), trace.events.duration_ns.tolist()) == ([50_000], [20_000])
    assert trace.notes == ()


def test_a_circle_is_left_out_and_noted(tmp_path: Path) -> None:
    circle = [{"Id": 8, "NodeType": 4, "data_deps": [9]}, {"Id": 9, "NodeType": 4, "data_deps": [8]}]
    trace = of_nodes(tmp_path / "a.json", NODES + circle)
    assert len(trace.events) == 4
    assert trace.notes[0].startswith("2 nodes depend on each other in a circle")


@pytest.mark.parametrize("nodes", [
    3, [], [{"Id": "x"}], [{"Id": 1, "NodeType": 4, "runtime": -1}], [{"Id": 1, "NodeType": 4, "runtime": 1 << 62}],
    [{"Id": 1, "NodeType": 4, "runtime": 1, "data_deps": [{}]}],
])  # fmt: skip
def test_hostile_graphs_are_an_error_that_names_the_file(tmp_path: Path, nodes: object) -> None:
    with pytest.raises(MalformedError, match=r"a\.json"):
        of_nodes(tmp_path / "a.json", nodes)


@needs_data(SHARED)
def test_a_trace_as_json_and_as_messages_is_the_same(tmp_path: Path) -> None:
    for name in ("json_trace.tar.gz", "feeder_tests_trace.tar.gz", "1.0.2-chakra.0.0.4.tgz"):
        with tarfile.open(SHARED / name) as archive:
            archive.extractall(tmp_path, filter="data")
    [first] = read_traces([tmp_path / "jsonData/chakra.0.json"])
    [second] = read_traces([tmp_path / "tests/data/chakra.0.et"])
    assert len(first.events.on_device()) == 1216
    assert first.span == second.span
    with pytest.raises(MalformedError, match="has no durations"):
        read_traces([tmp_path / "1.0.2-chakra.0.0.4.json"])
