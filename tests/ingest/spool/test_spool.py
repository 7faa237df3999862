import errno
import fcntl
import json
import math
import os
import random
import shutil
import signal
import stat
import struct
import subprocess
import sys
import threading
import zlib
from io import FileIO
from pathlib import Path

import pytest
from tests.ingest.descriptors import open_files

from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.data.schema.metric import NODE_KEYS, Column, Kind, MetricSet, Scalar
from crosswind.ingest.spool.plain_file import NotPlainError
from crosswind.ingest.spool.spool import (
    Frame,
    RecordFrame,
    RowsFrame,
    SetFrame,
    SpoolWriter,
    SweepRows,
    batch_id,
    read_frames,
    read_segment,
    recover,
    sealed_segments,
)

LOADS = MetricSet(
    "loads",
    "a set that no registry knows",
    (
        Column("ts_ns", "time", Kind.KEY),
        Column("node", "host", Kind.KEY, "string"),
        Column("watts", "power", dtype="float64"),
        Column("up", "whether it answered", dtype="bool"),
        Column("total", "a full 64-bit counter", Kind.COUNTER, "uint64"),
    ),
)
Rows = dict[str, list[Scalar]]
ROWS: Rows = {
    "ts_ns": [1, 2],
    "node": ["n1", "ñ2"],
    "watts": [1.5, None],
    "up": [True, False],
    "total": [2**64 - 1, None],
}


def frames_in(directory: Path) -> list[Frame]:
    return [frame for path in sealed_segments(directory) for frame in read_frames(path)]


def payload_frame(payload: bytes) -> bytes:
    return struct.pack("<II", len(payload), zlib.crc32(payload)) + payload


def json_frame(value: object) -> bytes:
    return payload_frame(json.dumps(value).encode())


SET_FRAME = json_frame({"kind": "set", "set": LOADS.as_json()})


def segment(directory: Path, content: bytes) -> Path:
    path = directory / "00000000000000000001-00000000.n1.segment"
    path.write_bytes(content)
    return path


def test_rows_and_records_come_back_as_they_went_in(tmp_path: Path) -> None:
    with SpoolWriter(tmp_path, "n1") as spool:
        spool.append_rows(LOADS, ROWS)
        spool.append_record("run", {"run_id": "r1", "config": {"lr": 0.1, "layers": [1, 2]}})
        spool.append_rows(LOADS, {"ts_ns": [3]})
    assert frames_in(tmp_path) == [
        SetFrame(LOADS),
        RowsFrame(LOADS, ROWS),
        RecordFrame("run", {"run_id": "r1", "config": {"lr": 0.1, "layers": [1, 2]}}),
        RowsFrame(LOADS, {"ts_ns": [3]}),
    ]


def test_every_segment_describes_its_own_sets(tmp_path: Path) -> None:
    with SpoolWriter(tmp_path, "n1", segment_bytes=2000) as spool:
        for number in range(60):
            spool.append_rows(LOADS, {"ts_ns": [number]})
    segments = sealed_segments(tmp_path)
    assert len(segments) > 3
    assert all(path.stat().st_size <= 2000 for path in segments)
    assert all(isinstance(next(read_segment(path)), SetFrame) for path in segments)
    times = [frame.columns["ts_ns"][0] for frame in frames_in(tmp_path) if isinstance(frame, RowsFrame)]
    assert times == list(range(60))


def test_a_segment_is_sealed_when_it_is_old_enough(tmp_path: Path) -> None:
    with SpoolWriter(tmp_path, "n1", segment_seconds=0.0) as spool:
        spool.append_record("run", {"run_id": "a"})
        spool.append_record("run", {"run_id": "b"})
        assert len(sealed_segments(tmp_path)) == 1


def test_a_set_that_changed_is_announced_again(tmp_path: Path) -> None:
    newer = MetricSet("loads", "second edition", (Column("rpm", "fan"),), version=2)
    with SpoolWriter(tmp_path, "n1") as spool:
        spool.append_rows(LOADS, {"ts_ns": [1]})
        spool.append_rows(newer, {"rpm": [900]})
    assert frames_in(tmp_path)[2:] == [SetFrame(newer), RowsFrame(newer, {"rpm": [900]})]


def test_nothing_appended_leaves_no_file(tmp_path: Path) -> None:
    with SpoolWriter(tmp_path / "new", "n1") as spool:
        spool.flush()
        assert spool.seal() is None
    assert list((tmp_path / "new").iterdir()) == []


def test_threads_share_a_writer(tmp_path: Path) -> None:
    with SpoolWriter(tmp_path, "n1", segment_bytes=4000) as spool:

        def work(offset: int) -> None:
            for number in range(100):
                spool.append_rows(LOADS, {"ts_ns": [offset + number]})

        threads = [threading.Thread(target=work, args=(1000 * i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    times = sorted(int(str(f.columns["ts_ns"][0])) for f in frames_in(tmp_path) if isinstance(f, RowsFrame))
    assert times == sorted(1000 * i + n for i in range(4) for n in range(100))


def test_a_forked_child_cannot_write_into_its_parents_segment(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path\n"
        "from crosswind.data.schema.errors import InvalidInputError\n"
        "from crosswind.ingest.spool.spool import SpoolWriter\n"
        "spool = SpoolWriter(Path(sys.argv[1]), 'n1'); spool.append_record('run', {'run_id': 'parent'})\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    try: spool.append_record('run', {'run_id': 'child'})\n"
        "    except InvalidInputError: spool.close(); os._exit(7)\n"
        "    os._exit(0)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7\n"
        "spool.close()\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=30)
    assert frames_in(tmp_path) == [RecordFrame("run", {"run_id": "parent"})]


@pytest.mark.parametrize("origin", ["", "../up", "a/b", ".hidden", "x" * 101, "new\nline", "käse"])
def test_an_origin_that_is_no_file_name_is_refused(tmp_path: Path, origin: str) -> None:
    with pytest.raises(InvalidInputError, match="origin"):
        SpoolWriter(tmp_path, origin)


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"ts_ns": [1], "node": ["a", "b"]}, "one length"),
        ({}, "one length"),
        ({"volts": [1]}, "volts"),
        ({"ts_ns": [1.5]}, "float"),
        ({"ts_ns": [True]}, "bool"),
        ({"ts_ns": [2**63]}, "9223372036854775808"),
        ({"total": [-1]}, "-1"),
        ({"watts": [float("nan")]}, "nan"),
        ({"watts": [10**400]}, "too large"),
        ({"node": ["\udc80"]}, "surrogates"),
    ],
)
def test_rows_that_no_reader_would_take_are_refused(tmp_path: Path, columns: Rows, named: str) -> None:
    with SpoolWriter(tmp_path, "n1") as spool, pytest.raises(InvalidInputError, match=named):
        spool.append_rows(LOADS, columns)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [{"loss": float("nan")}, {"x": object()}, {"x": float("-inf")}, {"x": "\ud800"}])
def test_a_record_that_json_cannot_say_is_refused(tmp_path: Path, value: dict[str, object]) -> None:
    with SpoolWriter(tmp_path, "n1") as spool, pytest.raises(InvalidInputError):
        spool.append_record("run", value)


def test_a_record_name_must_be_a_name(tmp_path: Path) -> None:
    with SpoolWriter(tmp_path, "n1") as spool, pytest.raises(InvalidInputError, match="record"):
        spool.append_record("../run", {})


WHOLE = SET_FRAME + json_frame({"kind": "rows", "set": "loads", "columns": {"ts_ns": [1]}})
ROW_2 = json_frame({"kind": "rows", "set": "loads", "columns": {"ts_ns": [2]}})
GARBAGE = {
    "half a header": ROW_2[:5],
    "half a payload": ROW_2[:-1],
    "huge length": b"\xff\xff\xff\xff" + ROW_2[4:],
    "length beyond the file": struct.pack("<I", 60 * 1024 * 1024) + ROW_2[4:],
    "length zero": b"\0" * 64,
    "wrong checksum": ROW_2[:-1] + b"!",
    "binary payload": payload_frame(os.urandom(100)),
    "not JSON": payload_frame(b"{kind: rows}"),
    "NaN": payload_frame(b'{"kind":"rows","set":"loads","columns":{"watts":[NaN]}}'),
    "Infinity": payload_frame(b'{"kind":"rows","set":"loads","columns":{"watts":[-Infinity]}}'),
    "float overflow": payload_frame(b'{"kind":"rows","set":"loads","columns":{"watts":[1e999]}}'),
    "endless integer": payload_frame(b'{"kind":"record","record":"run","value":{"x":' + b"9" * 9999 + b"}}"),
    "deep nesting": payload_frame(b"[" * 200_000),
    "an array": json_frame([1]),
    "no kind": json_frame({}),
    "unknown kind": json_frame({"kind": ["set"]}),
    "set of nothing": json_frame({"kind": "set", "set": None}),
    "set with a hostile name": json_frame({"kind": "set", "set": {**LOADS.as_json(), "name": "../../etc"}}),
    "set with a number for a name": json_frame({"kind": "set", "set": {**LOADS.as_json(), "name": 5}}),
    "set with a number for a column": json_frame({"kind": "set", "set": {**LOADS.as_json(), "columns": [5]}}),
    "column with a number for a name": json_frame(
        {"kind": "set", "set": {**LOADS.as_json(), "columns": [{"name": 5}]}}
    ),
    "column without a name": json_frame({"kind": "set", "set": {**LOADS.as_json(), "columns": [{"unit": "s"}]}}),
    "column with a foreign field": json_frame({"kind": "set", "set": {**LOADS.as_json(), "columns": [{"x": 1}]}}),
    "rows of an unknown set": json_frame({"kind": "rows", "set": "other", "columns": {"ts_ns": [1]}}),
    "rows of no set": json_frame({"kind": "rows", "columns": {"ts_ns": [1]}}),
    "rows without columns": json_frame({"kind": "rows", "set": "loads", "columns": {}}),
    "columns as a list": json_frame({"kind": "rows", "set": "loads", "columns": [1]}),
    "a column as a number": json_frame({"kind": "rows", "set": "loads", "columns": {"ts_ns": 1}}),
    "unequal columns": json_frame({"kind": "rows", "set": "loads", "columns": {"ts_ns": [1], "node": []}}),
    "nested value": json_frame({"kind": "rows", "set": "loads", "columns": {"ts_ns": [[1]]}}),
    "text for a number": json_frame({"kind": "rows", "set": "loads", "columns": {"ts_ns": ["1"]}}),
    "record without a name": json_frame({"kind": "record", "value": {}}),
    "record with a hostile name": json_frame({"kind": "record", "record": "a b", "value": {}}),
    "record of a list": json_frame({"kind": "record", "record": "run", "value": []}),
    "record beyond float range": payload_frame(b'{"kind":"record","record":"run","value":{"x":1e999}}'),
}


@pytest.mark.parametrize("what", GARBAGE)
def test_a_bad_frame_ends_the_reading_and_is_reported_with_its_offset(tmp_path: Path, what: str) -> None:
    path = segment(tmp_path, WHOLE + GARBAGE[what] + ROW_2)
    reader = read_segment(path)
    frames = list(reader)
    assert frames == [SetFrame(LOADS), RowsFrame(LOADS, {"ts_ns": [1]})]
    assert reader.report.frames == 2
    assert reader.report.torn_bytes == len(GARBAGE[what] + ROW_2)
    assert f"{path} at byte {len(WHOLE)}" in str(reader.report.reason)
    with pytest.raises(MalformedError, match=f"at byte {len(WHOLE)}"):
        list(read_frames(path))


def test_a_whole_segment_has_nothing_to_report(tmp_path: Path) -> None:
    reader = read_segment(segment(tmp_path, WHOLE))
    assert len(list(reader)) == 2
    assert (reader.report.torn_bytes, reader.report.reason) == (0, None)


def test_an_empty_segment_has_no_frames(tmp_path: Path) -> None:
    assert list(read_frames(segment(tmp_path, b""))) == []


def test_a_missing_segment_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="gone"):
        list(read_segment(tmp_path / "gone.segment"))


@pytest.mark.parametrize("cut", range(0, len(WHOLE + ROW_2), 7))
def test_recovery_keeps_every_whole_frame_wherever_the_file_was_cut(tmp_path: Path, cut: int) -> None:
    (tmp_path / "1.n1.open").write_bytes((WHOLE + ROW_2)[:cut])
    [report] = recover(tmp_path)
    ends = [len(SET_FRAME), len(WHOLE), len(WHOLE + ROW_2)]
    whole = sum(end <= cut for end in ends)
    expected = [RecordFrame("recovered", {"torn_bytes": report.torn_bytes, "reason": report.reason})] if whole else []
    assert frames_in(tmp_path)[whole:] == expected
    assert report.frames == whole
    assert report.torn_bytes == cut - ([0, *ends])[whole]
    assert list(tmp_path.glob("*.open")) == []


def test_recovery_leaves_a_living_writer_alone(tmp_path: Path) -> None:
    with SpoolWriter(tmp_path, "n1") as spool:
        spool.append_record("run", {"run_id": "a"})
        assert recover(tmp_path) == []
        spool.append_record("run", {"run_id": "b"})
    assert len(frames_in(tmp_path)) == 2


def test_recovery_follows_no_link(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_bytes(b"not a segment")
    (tmp_path / "1.n1.open").symlink_to(target)
    os.mkfifo(tmp_path / "2.n1.open")
    assert recover(tmp_path) == []
    assert target.read_bytes() == b"not a segment"


def hostile(directory: Path, what: str) -> Path:
    path = directory / "00000000000000000001-00000000.n1.segment"
    match what:
        case "link":
            (directory / "secret").write_text("secret")
            path.symlink_to(directory / "secret")
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "socket":
            os.mknod(path, stat.S_IFSOCK | 0o600)
    return path


@pytest.mark.parametrize("what", ["link", "pipe", "folder", "socket"])
def test_what_is_no_plain_file_is_not_opened(tmp_path: Path, what: str) -> None:
    path = hostile(tmp_path, what)
    for read in (batch_id, lambda file: list(read_frames(file))):
        with pytest.raises(NotPlainError, match=r"n1\.segment: expected a plain file"):
            read(path)


def test_a_file_system_without_locks_is_named_and_nothing_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(fd: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    spool = SpoolWriter(tmp_path, "n1")
    before = open_files()
    for _ in range(3):
        with pytest.raises(UnavailableError, match=r"its file system keeps no locks \(No locks available\)"):
            spool.append_record("run", {"run_id": "a"})
    (tmp_path / "1.n1.open").write_bytes(b"")
    with pytest.raises(UnavailableError, match=r"1\.n1\.open: its file system keeps no locks"):
        recover(tmp_path)
    assert not open_files() - before
    assert [path.name for path in tmp_path.iterdir()] == ["1.n1.open"]


def test_a_folder_that_was_removed_is_made_again(tmp_path: Path) -> None:
    with SpoolWriter(tmp_path / "spool", "n1") as spool:
        spool.append_record("run", {"run_id": "a"})
        spool.seal()
        shutil.rmtree(tmp_path / "spool")
        spool.append_record("run", {"run_id": "b"})
    assert frames_in(tmp_path / "spool") == [RecordFrame("run", {"run_id": "b"})]


def test_the_batch_id_names_content_and_origin(tmp_path: Path) -> None:
    def written(folder: str, name: str, content: bytes) -> str:
        (tmp_path / folder).mkdir(exist_ok=True)
        path = tmp_path / folder / name
        path.write_bytes(content)
        return batch_id(path)

    first = written("a", "1.n1.segment", WHOLE)
    assert len(first) == 64
    assert written("b", "2.n1.segment", WHOLE) == first
    assert written("b", "1.n2.segment", WHOLE) != first
    assert written("b", "1.n1.segment", WHOLE + ROW_2) != first
    with pytest.raises(InvalidInputError, match="segment"):
        batch_id(tmp_path / "a" / "1.n1.open")


def test_the_oldest_segments_are_given_up_last_and_counted(tmp_path: Path) -> None:
    with SpoolWriter(tmp_path, "n1", segment_bytes=100, directory_bytes=500) as spool:
        for number in range(50):
            spool.append_record("run", {"run_id": str(number)})
        dropped = spool.dropped_segments
    kept = [int(str(frame.value["run_id"])) for frame in frames_in(tmp_path) if isinstance(frame, RecordFrame)]
    assert dropped > 0
    assert sum(path.stat().st_size for path in sealed_segments(tmp_path)) <= 500
    assert kept == list(range(50 - len(kept), 50))


def test_a_full_disk_is_said_and_leaves_what_was_written_readable(tmp_path: Path) -> None:
    """The kernel's file size limit stands in for the disk: it too takes half a frame and then refuses."""
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from crosswind.data.schema.errors import UnavailableError\n"
        "from crosswind.ingest.spool.spool import SpoolWriter\n"
        "spool = SpoolWriter(Path(sys.argv[1]), 'n1')\n"
        "_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))\n"
        "refused = 0\n"
        "for number in range(20):\n"
        "    try: spool.append_record('run', {'run_id': str(number), 'text': 'x' * 100})\n"
        "    except UnavailableError: refused += 1\n"
        "spool.append_record('run', {'run_id': 'short'})\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))\n"
        "spool.append_record('run', {'run_id': 'after'})\n"
        "spool.close(); print(refused)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, capture_output=True, timeout=30)
    refused = int(done.stdout)
    assert 0 < refused < 20
    ids = [frame.value["run_id"] for frame in frames_in(tmp_path) if isinstance(frame, RecordFrame)]
    assert ids == [*(str(number) for number in range(20 - refused)), "short", "after"]


def test_a_directory_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnavailableError, match="file"):
        SpoolWriter(tmp_path / "file" / "spool", "n1")


APPENDER = """
import os, sys; from pathlib import Path
from crosswind.data.schema.metric import Column, MetricSet
from crosswind.ingest.spool.spool import SpoolWriter
ROUND = MetricSet("round", "numbers", (Column("number", "counts up"),))
spool = SpoolWriter(Path(sys.argv[1]), "n1", segment_bytes=3000)
os.write(1, b"ready\\n")
pid = 1
while pid:  # every round is a fresh child, so that the interpreter starts only once
    go = sys.stdin.buffer.readline()
    if not go:
        break
    pid = os.fork()
    if pid:
        os.write(1, b"%d\\n" % pid)
        os.waitpid(pid, 0)
        os.write(1, b"dead\\n")
else:
    directory, pipe = Path(sys.argv[1]) / go.decode().strip(), int(sys.argv[2])
    spool = SpoolWriter(directory, "n1", segment_bytes=3000)
    number = 0
    while True:
        spool.append_rows(ROUND, {"number": [number]})
        os.write(pipe, b"%d\\n" % number)
        number += 1
"""


def test_nothing_appended_is_lost_when_the_writer_is_killed(tmp_path: Path) -> None:
    """SIGKILL at 200 random moments: recovery returns every frame whose append returned, in order."""
    chance = random.Random(7)
    progress, pipe = os.pipe()
    parent = subprocess.Popen(
        [sys.executable, "-c", APPENDER, str(tmp_path), str(pipe)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[pipe],
    )
    assert parent.stdin
    assert parent.stdout
    with parent, os.fdopen(progress, "rb", buffering=0) as numbers:
        assert parent.stdout.readline() == b"ready\n"
        for number in range(200):
            parent.stdin.write(b"%d\n" % number)
            parent.stdin.flush()
            pid = int(parent.stdout.readline())
            seen = kill_after(numbers, pid, chance.randint(1, 2000))
            assert parent.stdout.readline() == b"dead\n"
            os.set_blocking(progress, False)
            last = last_number(seen + (numbers.read(1 << 20) or b""))
            os.set_blocking(progress, True)
            check_recovered(tmp_path / str(number), last)
        parent.stdin.close()
    os.close(pipe)


def kill_after(numbers: FileIO, pid: int, progress_bytes: int) -> bytes:
    seen = b""
    while len(seen) < progress_bytes:
        seen += numbers.read(256)
    os.kill(pid, signal.SIGKILL)
    return seen


def last_number(progress: bytes) -> int:
    return int(progress.rpartition(b"\n")[0].rpartition(b"\n")[2])


def check_recovered(directory: Path, last: int) -> None:
    recover(directory)
    numbers = [frame.columns["number"][0] for frame in frames_in(directory) if isinstance(frame, RowsFrame)]
    assert numbers in (list(range(last + 1)), list(range(last + 2)))  # the last append may have ended unreported
    assert list(directory.glob("*.open")) == []


MIXED = MetricSet(
    "mixed",
    "one of each",
    (
        *NODE_KEYS,
        Column("small", "signed"),
        Column("large", "unsigned", dtype="uint64"),
        Column("part", "a fraction", dtype="float64"),
        Column("word", "a text", dtype="string"),
        Column("truth", "yes or no", dtype="bool"),
    ),
)


def swept(directory: Path, *rows: list[object]) -> list[str | None]:
    refusals: list[str | None] = []

    def refuse(reasons: list[str | None]) -> tuple[SweepRows, ...]:
        refusals.extend(reasons)
        return ()

    with SpoolWriter(directory, "n1") as spool:
        spool.append_sweep([SweepRows(MIXED, 1, 2, "n1", None, rows)], refuse)  # type: ignore[arg-type]
    return refusals


@pytest.mark.parametrize(
    "row",
    [
        ["a", 1, 2, 3.5, "x", True],
        ["a", None, None, None, None, None],
        ["a", -(2**63), 2**64 - 1, -1, "", False],
        ["a", 2**63 - 1, 0, 1e308, "\u00e9", None],
    ],
)
def test_a_sweep_comes_back_as_it_went_in(tmp_path: Path, row: list[object]) -> None:
    assert swept(tmp_path, row) == [None]
    [frame] = [frame for frame in frames_in(tmp_path) if isinstance(frame, RowsFrame)]
    columns = {name: values[0] for name, values in frame.columns.items()}
    own = dict(zip(("device", "small", "large", "part", "word", "truth"), row, strict=True))
    assert columns == {"ts_ns": 1, "mono_ns": 2, "node": "n1", "boot_id": None} | own


@pytest.mark.parametrize(
    ("row", "named"),
    [
        (["a", 2**63, 2, 3.5, "x", True], "column small"),
        (["a", 1, -1, 3.5, "x", True], "column large"),
        (["a", 1, 2**64, 3.5, "x", True], "column large"),
        (["a", 1.0, 2, 3.5, "x", True], "column small"),
        (["a", True, 2, 3.5, "x", True], "column small"),
        (["a", "", 2, 3.5, "x", True], "column small"),
        (["a", 1, 2, math.nan, "x", True], "column part"),
        (["a", 1, 2, math.inf, "x", True], "column part"),
        (["a", 1, 2, 3.5, 4, True], "column word"),
        (["a", 1, 2, 3.5, "\ud800", True], "surrogates"),
        (["a", 1, 2, 3.5, "x", 1], "column truth"),
        ([7, 1, 2, 3.5, "x", True], "column device"),
        (["a", 1, 2, 3.5, "x"], "5 values in a row"),
    ],
)
def test_a_row_that_does_not_fit_its_set_is_left_out_with_its_reason(
    tmp_path: Path, row: list[object], named: str
) -> None:
    [reason] = swept(tmp_path, row)
    assert named in str(reason)
    assert list(frames_in(tmp_path)) == []
