"""Plans, trace files and what becomes of them at the end of a run."""

import gzip
import json
import os
from pathlib import Path

import pytest

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.capture.files import draft_of, name_of, pack, refuse, require_room
from crosswind.ingest.capture.plan import FILE, Plan
from crosswind.ingest.capture.stored import stored

TRACE = b'{"traceEvents": []}\n'
PLAN = Plan("run", (1, 3), 10, 12, 1000)


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    PLAN.write(tmp_path)
    assert Plan.read(tmp_path) == PLAN


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b'{"run_id":"r","ranks":[-1],"first":1,"last":2,"size_bytes":3}', b"\xff"]
)
def test_a_garbled_plan_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(MalformedError, match=FILE):
        Plan.read(tmp_path)


def test_a_link_is_no_plan(tmp_path: Path) -> None:
    (tmp_path / FILE).symlink_to("/etc/passwd")
    with pytest.raises(UnavailableError):
        Plan.read(tmp_path)


def test_a_whole_trace_is_packed_and_its_draft_removed(tmp_path: Path) -> None:
    draft = draft_of(tmp_path, name_of("", 1, 10, 12))
    draft.write_bytes(TRACE)
    packed = pack(draft, 1000)
    assert (packed.name, gzip.decompress(packed.read_bytes())) == ("rank1.step10-12.json.gz", TRACE)
    assert [path.name for path in tmp_path.iterdir()] == [packed.name]
    assert packed.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("content", "limit", "words"), [(TRACE[:-3], 1000, "cut off"), (TRACE, 10, "larger than")])
def test_nothing_is_left_of_a_trace_that_is_cut_off_or_too_large(
    tmp_path: Path, content: bytes, limit: int, words: str
) -> None:
    draft = draft_of(tmp_path, "rank1.step10-12")
    draft.write_bytes(content)
    with pytest.raises(UnavailableError, match=words):
        pack(draft, limit)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_noticed_before_a_capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_room(tmp_path, 1)
    monkeypatch.setattr("shutil.disk_usage", lambda _: os.terminal_size((0, 0)) and type("Usage", (), {"free": 1000}))
    with pytest.raises(UnavailableError, match="0 MB are free"):
        require_room(tmp_path, 1_000_000)


def test_the_end_of_a_run_keeps_its_traces_and_says_why_others_are_not_there(tmp_path: Path) -> None:
    folder, kept = tmp_path / "run.traces", tmp_path / "home" / "traces" / "run"
    folder.mkdir()
    for rank in (0, 1):
        draft = draft_of(folder, name_of("", rank, 10, 12))
        draft.write_bytes(TRACE)
        if rank == 0:
            pack(draft, 1000)  # the other one's rank was killed before it could
    refuse(folder, "rank2.step10-12", "the program's own profiler\nwas at work")
    (folder / "..rank9.json.gz").write_bytes(b"no name of ours")
    why = {(rank, 10): ("culprit", "baseline") for rank in range(4)}
    done = stored(folder, kept, why, 1000)
    tags = done.tags
    assert done.files == [kept / f"rank{rank}.step10-12.json.gz" for rank in (0, 1)]
    assert tags == {
        "trace.rank0.step10-12": f"culprit (baseline), {len((kept / 'rank0.step10-12.json.gz').read_bytes())} bytes: "
        "traces/run/rank0.step10-12.json.gz",
        "trace.rank1.step10-12": tags["trace.rank0.step10-12"].replace("rank0", "rank1"),
        "trace.rank2.step10-12": "not captured: the program's own profiler was at work",
        "trace.rank3.step10": "not captured: the rank had not come through these steps when it ended",
    }
    assert (not folder.exists(), kept.stat().st_mode & 0o777) == (True, 0o700)
    assert {path.stat().st_mode & 0o777 for path in kept.iterdir()} == {0o600}


def test_no_more_is_kept_than_the_budget_takes(tmp_path: Path) -> None:
    folder = tmp_path / "run.traces"
    folder.mkdir()
    for rank in (0, 1):
        (folder / f"rank{rank}.step1-2.json.gz").write_bytes(bytes(60))
    done = stored(folder, tmp_path / "kept", {}, 100)
    assert done.files == [tmp_path / "kept" / "rank0.step1-2.json.gz"]
    assert done.tags["trace.rank1.step1-2"] == "not kept: 60 bytes are more than the 40 left"
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["rank0.step1-2.json.gz"]


def test_a_link_is_not_kept(tmp_path: Path) -> None:
    folder, secret = tmp_path / "run.traces", tmp_path / "secret"
    folder.mkdir()
    secret.write_text(json.dumps({"a": 1}))
    (folder / "rank0.step1-2.json.gz").symlink_to(secret)
    assert stored(folder, tmp_path / "kept", {}, 1000).tags["trace.rank0.step1-2"].startswith("not kept")
    assert secret.exists()
