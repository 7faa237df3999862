"""Horovod's timelines, written for these tests as horovod/common/timeline.cc writes them, with the start's time and,
as older versions did, without it and without the end of the array.
"""

import json
from pathlib import Path

from tests.ingest.readers.logs.logged import CHANGED, HERE, read_log, read_text
from tests.ingest.trees import RECORDINGS

from crosswind.data.store.arrivals import last_to_arrive
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import Loaded
from crosswind.ingest.load.load_file import load_file
from crosswind.ingest.readers.logs.horovod import HorovodReader

RECORDED = RECORDINGS / "horovod"
READER = HorovodReader()
START = 1_614_600_000_000_000_000
TENSOR = "DistributedSGD_Allreduce/kernel"
NAMED = '[\n{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "weights"}},\n'


def events(*entries: tuple[str, str, int]) -> str:
    return NAMED + ",".join(json.dumps({"ph": ph, "name": name, "ts": ts, "pid": 1}) for ph, name, ts in entries)


def test_each_rank_arrives_when_rank_0_was_notified_that_it_is_ready() -> None:
    log = read_log(READER, RECORDED / "timeline.json")
    assert [
        (
            row["ts_ns"],
            row["rank"],
            row["step"],
            row["duration_seconds"],
            row["operation"],
            row["size_bytes"],
            row["group"],
        )
        for row in log.rows["collective"]
    ] == [
        (START + 1_000_000, 0, 0, 1_160_000, "all_reduce", 5120, TENSOR),
        (START + 1_250_000, 1, 0, None, "all_reduce", 5120, TENSOR),
        (START + 9_000_000, 0, 1, 101_160_000, "all_reduce", 5120, TENSOR),
        (START + 109_250_000, 1, 1, None, "all_reduce", 5120, TENSOR),
    ]
    [run] = log.runs
    assert (run.world_size, run.started_ns, run.ended_ns) == (2, START, START + 110_160_000)
    assert run.tags["steps_from"] == "turns of each tensor: Horovod knows no steps"


def test_who_came_last_to_a_collective_can_be_queried(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        load_file(store, RECORDED / "timeline.json", READER, Loaded(), context=HERE)
        with store.catalog.read() as session:
            [run] = session.runs.find(limit=9)
        frame = last_to_arrive(store, run.run_id)
    columns = ["step", "operation", "last_rank", "late_seconds"]
    assert frame[columns].values.tolist() == [[0, "all_reduce", 1, 0.00025], [1, "all_reduce", 1, 0.10025]]


def test_what_rank_0_did_is_kept_as_series() -> None:
    log = read_log(READER, RECORDED / "timeline.json")
    first = log.rows["series"][0]
    labels = json.loads(str(first["labels"]))
    assert [(row["name"], row["value"]) for row in log.rows["series"][:3]] == [
        ("NEGOTIATE_ALLREDUCE", 0.000255),
        ("MPI_ALLREDUCE", 0.00083),
        ("ALLREDUCE", 0.00085),
    ]
    assert (first["unit"], labels) == ("s", {"run_id": log.runs[0].run_id, "tensor": TENSOR, "turn": "0"})


def test_a_timeline_without_a_start_ends_when_the_file_was_last_changed(tmp_path: Path) -> None:
    log = read_text(READER, tmp_path, (RECORDED / "unterminated.json").read_text())
    assert [(row["ts_ns"], row["rank"], row["size_bytes"]) for row in log.rows["collective"]] == [
        (CHANGED - (2500 - 701) * 1000, 0, 8),
        (CHANGED - (2500 - 1702) * 1000, 1, 8),
    ]
    assert log.runs[0].ended_ns == CHANGED
    assert log.report.notes == [
        "time_from: the timeline's durations, back from the file's modification time",
        "1 collectives were under way at the end",
    ]


def test_collectives_from_the_cache_name_no_rank(tmp_path: Path) -> None:
    text = events(("B", "NEGOTIATE_ALLREDUCE", 1), ("E", "", 2), ("B", "ALLREDUCE", 3), ("E", "", 5))
    log = read_text(READER, tmp_path, text)
    assert "collective" not in log.rows
    assert [row["name"] for row in log.rows["series"]] == ["NEGOTIATE_ALLREDUCE", "ALLREDUCE"]
    assert "1 collectives without any rank's arrival (HOROVOD_CACHE_CAPACITY=0 records them)" in log.report.notes


def test_events_that_are_none_are_skipped_and_the_rest_is_read(tmp_path: Path) -> None:
    text = events(("B", "NEGOTIATE_ALLREDUCE", 1), ("E", "", 2)) + ',{"ph": oops},{"ph": "E", "ts": 9, "pid": 1},'
    log = read_text(READER, tmp_path, text + '{"ph": "E", "ts": 9, "pid": 7},{"ph": "B", "na')
    assert [(skipped.line, skipped.reason) for skipped in log.report.quoted] == [
        (3, "no JSON"),
        (3, "no event of a timeline: an end without a beginning"),
        (3, "no event of a timeline: 7"),
        (3, "the last event is cut short, or still being written"),
    ]
    assert len(log.rows["series"]) == 1


def test_other_traces_are_not_recognised(tmp_path: Path) -> None:
    assert not READER.recognises(tmp_path / "t", b'[\n{"ph": "B", "name": "forward", "ts": 1, "pid": 1},\n')
