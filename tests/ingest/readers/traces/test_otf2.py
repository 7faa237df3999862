"""OTF2 archives give a trace for each process: calls of MPI, and useful computation between them."""

from pathlib import Path

import pytest
from tests.needs import needs_data

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.traces.trace import Kind
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.traces.files import read_traces
from crosswind.ingest.readers.traces.otf2 import Otf2Reader

SHARED = Path(__file__).parents[5] / "shared/data/traces/otf2"


def written(folder: Path) -> Path:
    """An archive of two ranks, which compute and meet in a barrier; times in microseconds."""
    otf2 = pytest.importorskip("otf2")
    with otf2.writer.open(str(folder / "a"), timer_resolution=1_000_000) as archive:
        definitions = archive.definitions
        main = definitions.region("main", paradigm=otf2.enums.Paradigm.COMPILER)
        barrier = definitions.region("MPI_Barrier", paradigm=otf2.enums.Paradigm.MPI)
        node = definitions.system_tree_node("node7")
        for rank in range(2):
            group = definitions.location_group(f"MPI Rank {rank}", system_tree_parent=node)
            writer = archive.event_writer("Master thread", group=group)
            for method, time, region in (
                (writer.enter, 10, main),
                (writer.enter, 20 + 5 * rank, barrier),
                (writer.leave, 40, barrier),
                (writer.leave, 60, main),
            ):
                method(time, region)
    return folder / "a" / "traces.otf2"


def test_a_process_is_a_rank(tmp_path: Path) -> None:
    first, second = read_traces([written(tmp_path)])
    assert (first.rank, first.world_size, first.node) == (0, 2, "node7")
    call = second.events.of(Kind.MESSAGE)
    assert (second.names_of(call), call.begin_ns.tolist(), call.duration_ns.tolist()) == (
        ["MPI_Barrier"],
        [25_000],
        [15_000],
    )
    useful = first.events.of(Kind.USEFUL)
    assert list(zip(useful.begin_ns.tolist(), useful.duration_ns.tolist(), strict=True)) == [
        (10_000, 10_000),
        (40_000, 20_000),
    ]


def test_an_archive_without_its_events_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.with_suffix(".def").write_bytes(b"")
    with pytest.raises(MalformedError, match=r"traces\.otf2"):
        list(Otf2Reader().read(path, Report(str(path), "otf2")))


def test_without_the_library_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "otf2", None)
    with pytest.raises(UnavailableError, match=r"pip install 'crosswind\[otf2\]'"):
        list(Otf2Reader().read(tmp_path / "a.otf2", Report("a", "otf2")))


@needs_data(SHARED)
def test_an_archive_of_score_p_has_counters_of_useful_computation() -> None:
    pytest.importorskip("otf2")
    traces = read_traces([SHARED / "ping-pong-otf2-papi/traces.otf2"])
    assert [len(trace.events.of(Kind.MESSAGE)) for trace in traces] == [20, 20]
    assert all(trace.counters["cycles"] > 1e6 for trace in traces)
    assert [trace.counters for trace in read_traces([SHARED / "ping-pong-otf2/traces.otf2"])] == [{}, {}]
