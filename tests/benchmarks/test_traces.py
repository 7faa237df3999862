"""The pieces of the traces' benchmark: generated ranks are traces like others, and a process reports what it used."""

import json
import sys
from pathlib import Path

import pytest
from benchmarks.traces.compare import measured
from benchmarks.traces.ranks import as_rank, write_ranks

from crosswind.data.traces.trace import Kind, RankTrace
from crosswind.ingest.readers.traces.files import read_traces
from crosswind.models.traces.breakdown import breakdown
from crosswind.models.traces.collectives import collectives

RANKS = 3
MEGABYTES = 1.5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "ranks"
    assert write_ranks(path, RANKS, megabytes=MEGABYTES, recorded=path / "absent") == "generated"
    return path


@pytest.fixture(scope="module")
def traces(folder: Path) -> list[RankTrace]:
    return read_traces([folder])


def test_generated_ranks_are_json_of_the_size(folder: Path) -> None:
    for path in folder.iterdir():
        assert json.loads(path.read_text())["distributedInfo"]["world_size"] == RANKS
        assert MEGABYTES * 1e6 < path.stat().st_size < 1.3 * MEGABYTES * 1e6


def test_generated_ranks_are_of_one_run_and_understood(traces: list[RankTrace]) -> None:
    assert [trace.rank for trace in traces] == list(range(RANKS))
    assert not any(trace.notes for trace in traces)
    kinds = {Kind(kind) for kind in traces[0].events.kind.tolist()}
    assert {Kind.KERNEL, Kind.COLLECTIVE, Kind.OPERATOR, Kind.CALL, Kind.STEP} <= kinds


def test_generated_ranks_differ_and_their_collectives_match(traces: list[RankTrace]) -> None:
    times = [breakdown(trace) for trace in traces]
    assert len({one.compute_ns for one in times}) == RANKS
    assert all(0 < one.overlap_share < 1 for one in times)
    assert collectives(traces).is_in[:20].all()


def test_a_recorded_trace_becomes_another_rank_on_another_clock() -> None:
    text = b'{"distributedInfo": {"rank": 1, "world_size": 2}, "traceEvents": [{"ts": 1000, "dur": 5}, {"ts": 1007}]}'
    moved = json.loads(as_rank(text, 3, 8))
    assert moved["distributedInfo"] == {"rank": 3, "world_size": 8}
    first, second = (event["ts"] for event in moved["traceEvents"])
    assert first > 1000
    assert second - first == 7


def test_a_process_reports_its_work_and_stays_small(folder: Path, traces: list[RankTrace]) -> None:
    used = measured([sys.executable, "-m", "benchmarks.traces.work", "analyse", str(folder)])
    expected = [(one.compute_ns + one.overlapped_ns) / 1e3 for one in map(breakdown, traces)]
    assert used["compute_us"] == expected
    assert used["cpu_seconds"] > 0
    assert used["imported_megabytes"] < used["peak_megabytes"] < used["imported_megabytes"] + 40


def test_what_was_read_before_opens_with_the_same_events(folder: Path, tmp_path: Path, traces: list[RankTrace]) -> None:
    command = [sys.executable, "-m", "benchmarks.traces.work", "reopen", str(folder / "rank0.json"), str(tmp_path)]
    assert measured(command)["events"] == measured(command)["events"] == len(traces[0].events)
    assert list(tmp_path.glob("*.parquet"))
