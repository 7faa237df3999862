"""Captured traces through the spool into the store: once, whichever way they come, and nothing hostile with them."""

import base64
import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.ingest.capture.made_trace import BEGIN_NS, packed_trace, trace_file

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.run import RunState
from crosswind.data.store.store import Store
from crosswind.data.store.traced_runs import traces_of_run
from crosswind.ingest.capture import record
from crosswind.ingest.capture.record import RECORD, CapturedTrace
from crosswind.ingest.capture.sending import Sending
from crosswind.ingest.load.load import Loaded, load_spool
from crosswind.ingest.load.load_traces import load_traces
from crosswind.ingest.reader.reader import Context
from crosswind.ingest.spool.spool import SpoolWriter

END_NS = BEGIN_NS + 10**9
VALUE = CapturedTrace("r1", "rank0.step10-10.json.gz", 0, BEGIN_NS, END_NS, "").record()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as store:
        yield store


def sent(spool: Path, run_id: str, files: list[Path], **values: Any) -> str | None:
    """Write a run and its traces into a spool."""
    run = {"run_id": run_id, "workload": "toy", "system": "lab", "state": RunState.COMPLETED}
    with SpoolWriter(spool, f"{run_id}-wrapper") as writer:
        words = Sending(writer, run_id, BEGIN_NS, END_NS).send(files)
        writer.append_record("run", {**run, "started_ns": BEGIN_NS, "ended_ns": END_NS})
        if values:
            writer.append_record(RECORD, VALUE | values)
    return words


def events(store: Store, run_id: str = "r1") -> dict[int, int]:
    """Return the events by rank."""
    return {int(trace.rank or 0): len(trace.events) for trace in traces_of_run(store, run_id)}


def test_two_captures_of_a_rank_and_one_of_another_are_stored_with_the_run(store: Store, tmp_path: Path) -> None:
    files = [trace_file(tmp_path / "traces", rank, step) for rank, step in ((0, 10), (0, 20), (1, 10))]
    assert sent(tmp_path / "spool", "r1", files) == "3 traces are stored with the run: crosswind trace --run r1"
    assert load_spool(store, tmp_path / "spool").problems == []
    assert events(store) == {0: 4, 1: 2}
    first, second = traces_of_run(store, "r1")
    assert second.source == "traces/r1/rank1.step10-10.json.gz"
    assert first.notes[-1] == "rank 0: 2 of its traces are joined, rank0.step10-10.json.gz, rank0.step20-20.json.gz"


def test_a_restart_s_trace_is_that_of_its_own_part(store: Store, tmp_path: Path) -> None:
    words = sent(tmp_path / "spool", "r1", [trace_file(tmp_path, 0, part="restart1.")])
    assert words == "1 trace is stored with the run: crosswind trace --run r1-restart1"
    sent(tmp_path / "spool", "r1-restart1", [])
    load_spool(store, tmp_path / "spool")
    assert events(store, "r1-restart1") == {0: 2}


def test_what_was_sent_is_not_stored_again_by_hand_nor_the_other_way_round(store: Store, tmp_path: Path) -> None:
    files = [trace_file(tmp_path / "traces" / "r1", rank) for rank in (0, 1)]
    sent(tmp_path / "spool", "r1", files[:1])
    load_spool(store, tmp_path / "spool")
    for _ in range(2):
        load_traces(store, files, "r1", loaded := Loaded(), context=Context("lab"))
    assert (events(store), loaded.rows) == ({0: 2, 1: 2}, 0)
    sent(tmp_path / "spool", "r1", files[1:])
    load_spool(store, tmp_path / "spool")
    assert events(store) == {0: 2, 1: 2}


def test_a_file_too_large_to_send_is_named_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "MOST_BYTES", 1 << 20)
    for part, run_id in (("", "r1"), ("restart1.", "r1-restart1")):
        path = trace_file(tmp_path, 0, part=part)
        path.write_bytes(os.urandom((1 << 20) + 1))
        words = sent(tmp_path / "spool", "r1", [path])
        expected = f"{path.name} is not stored (larger than the 1 MiB that are sent): crosswind ingest {path}"
        assert words == f"{expected} --run {run_id}"


def test_a_file_that_would_unpack_to_too_much_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "MOST_PLAIN_BYTES", 100)
    with pytest.raises(UnavailableError, match="larger than the 0 MiB, unpacked"):
        CapturedTrace.of_file(trace_file(tmp_path, 0), "r1", 0, 1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rank": -1}, "rank is -1"),
        ({"rank": True}, "rank is True"),
        ({"rank": 2**31}, "expected those of a run"),
        ({"run_id": ""}, "expected those of a run"),
        ({"run_id": 7}, "run_id is 7"),
        ({"name": "../../rank0.step1-2.json.gz"}, "name is '../../rank0"),
        ({"started_ns": 2**63}, "started_ns is 9223372036854775808"),
        ({"more": 1}, "expected run_id, name, content"),
    ],
)
def test_a_record_that_is_none_is_refused_by_name(values: dict[str, Any], message: str) -> None:
    with pytest.raises(MalformedError, match=message):
        CapturedTrace.of_record(VALUE | values)


@pytest.mark.parametrize(
    ("content_of", "message"),
    [
        (lambda: "no base64!", "expected base64"),
        (lambda: base64.b64encode(b"plain text").decode(), "rank0.step10-10.json.gz"),
        (lambda: base64.b64encode(gzip.compress(b'{"traceEvents": []}')).decode(), "no event"),
        (lambda: base64.b64encode(gzip.compress(bytes(1 << 28) + b"x", 1)).decode(), "rank0.step10-10.json.gz"),
    ],
    ids=["not base64", "text", "no event", "bomb"],
)
def test_a_hostile_content_is_refused_and_the_run_is_stored(
    content_of: Callable[[], str], message: str, store: Store, tmp_path: Path
) -> None:
    sent(tmp_path / "spool", "r1", [], content=content_of())
    [problem] = load_spool(store, tmp_path / "spool").problems
    assert message in problem
    with store.catalog.read() as session:
        assert session.runs.get("r1").state is RunState.COMPLETED


def test_a_trace_that_ends_early_is_stored_as_far_as_it_goes_or_refused(store: Store, tmp_path: Path) -> None:
    content = base64.b64encode(packed_trace(0)[:-20]).decode()
    sent(tmp_path / "spool", "r1", [], content=content)
    assert len(load_spool(store, tmp_path / "spool").problems) <= 1
