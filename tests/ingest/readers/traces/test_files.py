"""The door gives a run's ranks from files and folders, and says what does not fit together."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.ingest.readers.traces.chrome import document, kernel, step

from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.data.traces.cache import TraceCache
from crosswind.data.traces.trace import RankTrace
from crosswind.ingest.readers.traces import kineto
from crosswind.ingest.readers.traces.files import read_traces, stream_traces, trace_files
from crosswind.ingest.readers.traces.one_run import rank_in_name
from crosswind.models.traces.report import trace_report

EVENTS = [step(1, 0, 10), kernel(1, 2), kernel(4, 2), step(2, 10, 10), kernel(12, 3)]


def written(folder: Path, *ranks: int, **members: object) -> list[Path]:
    """Files of these ranks."""
    paths = [folder / f"r{number}.json" for number, _ in enumerate(ranks)]
    for path, rank in zip(paths, ranks, strict=True):
        path.write_text(document(EVENTS, rank, **({"world_size": 16} | members)))
    return paths


@pytest.mark.parametrize("workers", [1, 3])
def test_a_folder_is_its_ranks_in_order(tmp_path: Path, workers: int) -> None:
    written(tmp_path, *reversed(range(12)))
    (tmp_path / "notes.txt").write_text("not a trace")
    cache = TraceCache(tmp_path / ".cache")
    traces = read_traces([tmp_path], workers=workers, cache=cache)
    assert [trace.rank for trace in traces] == list(range(12))
    assert all(len(trace.events) == len(EVENTS) for trace in traces)
    assert len(list(cache.folder.iterdir())) == 12
    assert [vars(one) | {"events": 0} for one in read_traces([tmp_path], cache=cache)] == [
        vars(one) | {"events": 0} for one in traces
    ]


def test_files_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    written(tmp_path, *range(11))
    assert [file.path.name for file in trace_files([tmp_path])][-2:] == ["r9.json", "r10.json"]


def test_a_stream_reads_no_further_than_its_caller(tmp_path: Path) -> None:
    written(tmp_path, 0, 1, 2)[2].write_text('{"traceEvents": 3}')
    stream = stream_traces([tmp_path])
    assert next(stream).rank == 0
    with pytest.raises(MalformedError, match=r"r2\.json"):
        list(stream)


def test_an_error_in_another_process_names_its_file(tmp_path: Path) -> None:
    written(tmp_path, 0, 1)[1].write_text('{"traceEvents": 3}')
    with pytest.raises(MalformedError, match=r"r1\.json"):
        read_traces([tmp_path], workers=2)


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    [path] = written(tmp_path, 0)
    cache = TraceCache(tmp_path / ".cache")
    assert len(read_traces([path], cache=cache)[0].events) == 5
    path.write_text(document([*EVENTS, kernel(16, 1)], 0))
    assert len(read_traces([path], cache=cache)[0].events) == 6


def test_a_file_that_grows_while_it_is_read_is_noted_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [path] = written(tmp_path, 0)
    read: Callable[..., RankTrace] = kineto._Collected.trace

    def read_as_it_grows(*arguments: object) -> RankTrace:
        with path.open("a") as stream:
            stream.write(" ")
        return read(*arguments)

    monkeypatch.setattr(kineto._Collected, "trace", read_as_it_grows)
    cache = TraceCache(tmp_path / ".cache")
    [trace] = read_traces([path], cache=cache)
    assert "r0.json changed while it was read: its end may be missing" in trace.notes
    assert not cache.folder.exists()


NAMES = {
    "rank3.json": 3,
    "trace_rank-12.json.gz": 12,
    "Rank_7.pt.trace.json": 7,
    "worker_3.pt.trace.json": 3,
    "host_4711.1718000000.pt.trace.json": None,
    "trace.json": None,
}


@pytest.mark.parametrize("name", NAMES)
def test_a_rank_may_stand_in_the_name(name: str) -> None:
    assert rank_in_name(name) == NAMES[name]


def test_a_rank_that_is_nowhere_is_the_position(tmp_path: Path) -> None:
    for name in ("a.json", "b.json", "rank0.json"):
        (tmp_path / name).write_text(document(EVENTS))
    traces = read_traces([tmp_path / "rank0.json", tmp_path / "b.json"])
    assert [Path(trace.source).name for trace in traces] == ["b.json", "rank0.json"]
    assert "no rank is stated: 0 by its position among the files" in traces[0].notes
    [trace] = read_traces([tmp_path / "rank0.json"])
    assert "rank 0 is read from the file's name" in trace.notes


def test_a_rank_twice_is_an_error_that_names_both_files(tmp_path: Path) -> None:
    written(tmp_path, 1, 1)
    with pytest.raises(InvalidInputError, match=r"r1\.json: rank 1 again, as in .*r0\.json; expected one trace"):
        read_traces([tmp_path])


@pytest.mark.parametrize(("members", "reason"), [
    ({"world_size": 4}, "world size 4, but 16 in"),
    ({"job_name": "b"}, "run b, but a in"),
    ({"rank": 20}, "rank 20 of 16; expected one from 0 to 15"),
])  # fmt: skip
def test_ranks_of_other_runs_are_an_error(tmp_path: Path, members: dict[str, object], reason: str) -> None:
    first, second = written(tmp_path, 0, 1, job_name="a")
    second.write_text(document(EVENTS, **({"rank": 1, "world_size": 16} | members)))  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=rf"r1\.json: {reason}"):
        read_traces([first, second])


def test_groups_that_contradict_are_an_error(tmp_path: Path) -> None:
    for rank, ranks in enumerate(("[0, 1]", "[1, 2]")):
        events = [*EVENTS, kernel(17, 1, "nccl", **{"Process Group Name": "dp", "Process Group Ranks": ranks})]
        (tmp_path / f"{rank}.json").write_text(document(events, rank))
    with pytest.raises(InvalidInputError, match=r"1\.json: group 'dp' has ranks 1, 2, but 0, 1 in"):
        read_traces([tmp_path])


def noted(folder: Path, second: list[dict[str, object]]) -> tuple[str, ...]:
    """The notes of rank 1, whose events are these."""
    written(folder, 0)
    (folder / "r1.json").write_text(document(second, 1, 16))
    return read_traces([folder])[1].notes


def test_what_is_odd_is_noted(tmp_path: Path) -> None:
    [note] = noted(tmp_path, [event | {"ts": event["ts"] + 5e6} for event in EVENTS])
    assert note.startswith("its times do not overlap those of")
    *_, note = noted(tmp_path, [event | {"ts": event["ts"] * 1e3, "dur": event["dur"] * 1e3} for event in EVENTS])
    assert note.endswith("are the times of one in other units?")
    [note] = noted(tmp_path, [event | {"ts": event["ts"] + 0.001} for event in EVENTS])
    assert note.startswith("its times are in steps of 1 ns")
    [note] = noted(tmp_path, [kernel(1, 9)])
    assert note == "no steps are marked: the whole trace counts as one"


def test_one_rank_alone_is_noted(tmp_path: Path) -> None:
    [path] = written(tmp_path, 3)
    [trace] = read_traces([path])
    assert not trace.notes
    assert "one rank of 16 only: waits for others cannot be seen" in trace_report([trace]).notes


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(MalformedError, match="pipe: neither a file nor a folder"):
        read_traces([tmp_path / "pipe"])


def test_a_cut_off_file_is_noted(tmp_path: Path) -> None:
    [path] = written(tmp_path, 3)
    path.write_bytes(gzip.compress(path.read_bytes())[:-20])
    [trace] = read_traces([path])
    assert any("breaks off" in note for note in trace.notes)


def test_no_trace_is_an_error_that_says_what_is_one(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    with pytest.raises(InvalidInputError, match=r"a\.txt: no trace by its content; expected torch\.profiler"):
        read_traces([tmp_path / "a.txt"])
    with pytest.raises(InvalidInputError, match="1 files, none of them a trace"):
        read_traces([tmp_path])
    with pytest.raises(InvalidInputError, match="expected at least one"):
        read_traces([])
    with pytest.raises(UnavailableError, match="No such file"):
        read_traces([tmp_path / "b.json"])
