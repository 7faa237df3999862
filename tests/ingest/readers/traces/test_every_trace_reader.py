"""The promises of all readers of traces."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.ingest.readers.traces import test_nsys, test_paraver, test_rocpd, test_rocprof
from tests.ingest.readers.traces.chrome import document, kernel
from tests.needs import needs_data

from crosswind.data.schema.errors import ProjectError
from crosswind.ingest.reader.lines import head_of
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.traces import TRACE_READERS
from crosswind.ingest.readers.traces.files import TraceFile, trace_files
from crosswind.ingest.readers.traces.kineto import KinetoReader
from crosswind.ingest.readers.traces.reader import TraceReader

SHARED = Path(__file__).parents[5] / "shared/data/traces"
RECORDED = Path(__file__).parents[2] / "recorded"
READERS = pytest.mark.parametrize("reader", TRACE_READERS, ids=lambda reader: reader.name)
HEADS = [
    b"", b"{", b"[", b"\n", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1", b"SQLite format 3\0", b"#Paraver (",
    b"\x03BOTF2", b'{"traceEvents":', b'{"rocprofiler-sdk-tool":', b'{"workload_graph":', b"\xff" * 4096, b"\0" * 4096,
]  # fmt: skip


def own(folder: Path) -> dict[str, Path]:
    """A file of each format that we can write, by its reader's name."""
    (folder / "kineto.json").write_text(document([kernel(0, 1)], 0))
    process = {"rocprofiler-sdk-tool": [test_rocprof.tool(**test_rocprof.RECORDS)]}
    (folder / "rocprof.json").write_text(json.dumps(process))
    return {
        "kineto": folder / "kineto.json",
        "rocprof": folder / "rocprof.json",
        "nsys": test_nsys.export(folder / "nsys.sqlite"),
        "rocpd": test_rocpd.made(folder / "rocpd.db"),
        "paraver": test_paraver.written(folder),
        "xplane": RECORDED / "xplane_cuda/two_steps.xplane.pb.gz",
    }


def claimants(path: Path) -> list[str]:
    """The names of readers that recognise it."""
    return [reader.name for reader in TRACE_READERS if reader.recognises(path, head_of(path))]


def test_names_differ() -> None:
    assert len({reader.name for reader in TRACE_READERS}) == len(TRACE_READERS)


def test_a_file_is_recognised_by_its_reader_alone(tmp_path: Path) -> None:
    files = own(tmp_path)
    assert {name: claimants(path) for name, path in files.items()} == {name: [name] for name in files}


@READERS
@pytest.mark.parametrize("head", HEADS, ids=repr)
def test_no_head_raises_and_what_is_recognised_is_an_error_that_names_the_file(
    tmp_path: Path, reader: TraceReader, head: bytes
) -> None:
    path = tmp_path / "a.et"
    path.write_bytes(head)
    if reader.recognises(path, head):
        with pytest.raises(ProjectError, match=r"a\.et"):
            TraceFile(path, reader).read(None)


@READERS
def test_damaged_files_are_read_or_are_an_error(tmp_path: Path, reader: TraceReader) -> None:
    path = own(tmp_path).get(reader.name)
    if path is None:
        pytest.skip("its own test damages it")
    content, chance = path.read_bytes(), random.Random(7)
    for number in range(30):
        damaged = bytearray(content[: len(content) * (30 - number // 3) // 30])
        for _ in range(number):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        other = tmp_path / f"damaged{''.join(path.suffixes)}"
        other.write_bytes(damaged)
        try:
            for trace in reader.read(other, Report(str(other), reader.name)):
                assert (trace.events.duration_ns >= 0).all()
        except ProjectError as error:
            assert "damaged" in str(error)  # noqa: PT017  an error or none


@READERS
def test_a_bomb_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: TraceReader) -> None:
    module = __import__(type(reader).__module__, fromlist=["LIMIT"])
    limits = [name for name in ("LIMIT", "WHOLE_LIMIT") if hasattr(module, name)]
    path = own(tmp_path).get(reader.name)
    if path is None or not limits:
        pytest.skip("it unpacks nothing")
    for name in limits:
        monkeypatch.setattr(module, name, 1 << 16)
    if isinstance(reader, KinetoReader):  # its limit is a field
        reader = replace(reader, limit=1 << 16)
    bomb = tmp_path / "bomb.zst"
    with pa.output_stream(str(bomb), compression="zstd") as stream:
        stream.write((path.read_bytes() if path.suffix != ".gz" else b"") + b"\n" * (1 << 22))
    with pytest.raises(ProjectError, match=r"bomb\.zst"):
        list(reader.read(bomb, Report(str(bomb), reader.name)))


@needs_data(SHARED)
def test_each_shared_file_is_recognised_by_one_reader() -> None:
    files = [file for folder in ("kineto", "nsys", "rocprof", "xplane", "paraver", "otf2", "steps", "pairs")
             for file in trace_files([SHARED / folder])]  # fmt: skip
    assert {file.path: claimants(file.path) for file in files} == {file.path: [file.reader.name] for file in files}
    assert len(files) == 29 + 3 + 4
