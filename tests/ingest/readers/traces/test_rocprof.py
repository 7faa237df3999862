"""rocprofv3's JSON gives a trace for each process on each device."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.needs import needs_data

from crosswind.data.schema.errors import MalformedError
from crosswind.data.traces.trace import Kind, RankTrace
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.traces.files import read_traces
from crosswind.ingest.readers.traces.rocprof import RocprofReader

SHARED = Path(__file__).parents[5] / "shared/data/traces/rocprof/908_results.json.gz"


def record(begin: int, end: int, correlation: int, **members: object) -> dict[str, Any]:
    """A record."""
    ids = {"correlation_id": {"internal": correlation, "external": 0}, "thread_id": 9, "stream_id": {"handle": 3}}
    return {"start_timestamp": begin, "end_timestamp": end} | ids | members


def dispatch(begin: int, end: int, correlation: int, kernel: int, agent: int) -> dict[str, Any]:
    """A kernel's dispatch."""
    return record(begin, end, correlation, dispatch_info={"kernel_id": kernel, "agent_id": {"handle": agent}})


def tool(**records: object) -> dict[str, Any]:
    """A process with two devices."""
    return {
        "metadata": {"pid": 5, "node": {"hostname": "node7"}},
        "agents": [{"id": {"handle": 40 + n}, "type": 1 + (n > 0), "logical_node_type_id": n - 1} for n in range(3)],
        "strings": {
            "buffer_records": [
                {"kind": "NONE", "operations": []},
                {"kind": "HIP_RUNTIME_API", "operations": ["NONE", "hipLaunchKernel", "hipStreamSynchronize"]},
                {"kind": "MEMORY_COPY", "operations": ["NONE", "MEMORY_COPY_HOST_TO_DEVICE"]},
            ],
            "marker_api": [{"key": 7, "value": "step 1"}],
        },
        "kernel_symbols": [
            {"kernel_id": 1, "formatted_kernel_name": "gemm"},
            {"kernel_id": 2, "formatted_kernel_name": "ncclDevKernel_Generic"},
        ],
        "buffer_records": records,
    }


RECORDS = {
    "kernel_dispatch": [dispatch(10, 20, 1, 1, 41), dispatch(12, 30, 2, 2, 41), dispatch(11, 15, 3, 9, 42)],
    "memory_copy": [record(1, 4, 4, kind=2, operation=1, bytes=64, dst_agent_id={"handle": 41})],
    "hip_api": [record(5, 6, 1, kind=1, operation=1), record(6, 9, 5, kind=1, operation=2)],
    "marker_api": [record(0, 50, 7, kind=1, operation=0)],
}  # fmt: skip


def read(path: Path, document: object) -> list[RankTrace]:
    """Write and read it."""
    path.write_text(json.dumps(document))
    assert RocprofReader().recognises(path, path.read_bytes()[:1000])
    return list(RocprofReader().read(path, Report(str(path), "rocprof")))


def test_each_device_of_a_process_is_a_rank(tmp_path: Path) -> None:
    first, second = read(tmp_path / "a.json", {"rocprofiler-sdk-tool": [tool(**RECORDS)]})
    by_name = dict(zip(first.names_of(first.events), map(Kind, first.events.kind), strict=True))
    assert by_name == {
        "step 1": Kind.STEP,
        "MEMORY_COPY_HOST_TO_DEVICE": Kind.COPY,
        "hipLaunchKernel": Kind.CALL,
        "hipStreamSynchronize": Kind.SYNC,
        "gemm": Kind.KERNEL,
        "ncclDevKernel_Generic": Kind.COLLECTIVE,
    }
    assert first.events.of(Kind.COPY).bytes.tolist() == [64]
    assert first.events.of(Kind.KERNEL).correlation.tolist() == [1]
    assert (first.node, first.span, second.span) == ("node7", (1, 30), (11, 15))
    assert {place.device for place in second.places} == {1, -1}


@pytest.mark.parametrize("document", [
    {"rocprofiler-sdk-tool": 3},
    {"rocprofiler-sdk-tool": [{"buffer_records": {"kernel_dispatch": [{"start_timestamp": "x", "end_timestamp": 1}]}}]},
    {"rocprofiler-sdk-tool": [{"buffer_records": {"kernel_dispatch": [dispatch(0, 1 << 70, 1, 1, 41)]}}]},
    {"rocprofiler-sdk-tool": [tool()]},
])  # fmt: skip
def test_hostile_values_are_an_error_that_names_the_file(tmp_path: Path, document: object) -> None:
    with pytest.raises(MalformedError, match=r"a\.json"):
        read(tmp_path / "a.json", document)


@needs_data(SHARED)
def test_a_trace_of_training_on_mi300_is_read_whole() -> None:
    [trace] = read_traces([SHARED])
    assert len(trace.events.on_device()) == 43915
    assert len(trace.events.of(Kind.COLLECTIVE)) == 1310
