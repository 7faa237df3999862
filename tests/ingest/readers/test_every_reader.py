"""Promises of every reader, held over the explicit list; a new reader adds its recorded files here."""

import contextlib
import gzip
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.data.schema.job import Job
from crosswind.data.schema.run import Run
from crosswind.data.schema.trial import History
from crosswind.ingest.reader.reader import Context, Reader, Record, Report
from crosswind.ingest.readers.formats import READERS, reader_for
from crosswind.ingest.readers.search import candidates_below

EACH = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)


def recorded(reader: Reader) -> list[Path]:
    return sorted((RECORDINGS / reader.name).iterdir())


def read(reader: Reader, path: Path) -> tuple[list[Record], Report]:
    report = Report(str(path), reader.name)
    return list(reader.read(path, report, Context("test"))), report


def recognised(path: Path) -> Reader | None:
    return next(iter(candidates_below(path))).reader if path.is_dir() else reader_for(path)


def row_count(records: list[Record]) -> int:
    trials = sum(len(record.trials) for record in records if isinstance(record, History))
    others = (record for record in records if not isinstance(record, History))
    return trials + sum(len(record) if isinstance(record, pa.Table) else 1 for record in others)


@EACH
def test_it_has_recorded_input_and_recognises_it(reader: Reader) -> None:
    assert recorded(reader)
    for path in recorded(reader):
        assert recognised(path) is reader


@EACH
def test_it_recognises_nothing_else(reader: Reader, tmp_path: Path) -> None:
    for head in (
        b"",
        b"\0" * 100,
        b"\x1f\x8b",
        b"\x1f\x8b\x08junk",
        b"time,node\n1,2\n",
        b"{}",
        b"\xff" * 65536,
        b"\n\n",
    ):
        assert not reader.recognises(tmp_path / f"x.{reader.name}", head)


@EACH
def test_it_counts_what_it_reads_and_names_the_system(reader: Reader) -> None:
    for path in recorded(reader):
        rows, report = read(reader, path)
        assert report.read == row_count(rows) > 0
        assert {row.system for row in rows if isinstance(row, Job | Run)} <= {"test"}


@EACH
def test_reading_twice_gives_the_same(reader: Reader) -> None:
    for path in recorded(reader):
        assert read(reader, path) == read(reader, path)


@EACH
def test_a_packed_file_is_recognised_and_read_alike(reader: Reader, tmp_path: Path) -> None:
    folder = tmp_path / reader.name
    folder.mkdir()
    for path in (file for file in recorded(reader) if file.is_file()):
        packed = folder / f"{path.name}.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        shutil.copystat(path, packed)  # as gzip does
        assert reader_for(packed) is reader
        assert read(reader, packed)[0] == read(reader, path)[0]


@EACH
def test_damage_is_reported_and_never_a_crash(reader: Reader, tmp_path: Path) -> None:
    chance = random.Random(5)
    for path in recorded(reader):
        for attempt in range(60):
            whole = tmp_path / f"{attempt}-{path.name}"
            shutil.copytree(path, whole) if path.is_dir() else shutil.copyfile(path, whole)
            files = [file for file in whole.rglob("*") if file.stat().st_size] if path.is_dir() else [whole]
            damage(chance.choice([file for file in files if file.is_file()]), attempt, chance)
            with contextlib.suppress(MalformedError):  # any other error is a crash
                rows, report = read(reader, whole)
                assert report.read == row_count(rows)


def damage(victim: Path, attempt: int, chance: random.Random) -> None:
    content = victim.read_bytes()
    damaged = bytearray(content)
    for _ in range(attempt):
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    victim.write_bytes(damaged if attempt % 2 else gzip.compress(content)[: chance.randrange(1, 900)])


@EACH
def test_its_name_and_description_are_for_people(reader: Reader) -> None:
    assert reader.name.isidentifier()
    assert 10 < len(reader.description) < 80
    assert reader_for(Path("never opened"), reader.name) is reader


def test_names_are_unique() -> None:
    assert len({reader.name for reader in READERS}) == len(READERS)


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match="format 'abacus' is not known; expected one of: sacct"):
        reader_for(Path("never opened"), "abacus")


def test_an_unrecognised_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n")
    with pytest.raises(MalformedError, match=r"notes\.txt: format not recognised; no known format is near; .*--help"):
        reader_for(path)
    path.write_bytes(b"")
    with pytest.raises(MalformedError, match=r"notes\.txt: empty; expected a file of a known format"):
        reader_for(path)
    with pytest.raises(UnavailableError, match="absent"):
        reader_for(tmp_path / "absent")


DIARY = """
class DiaryReader:
    name = "diary"
    description = "one line a day"

    def recognises(self, path, head):
        return head.startswith(b"dear diary")
"""


def install(folder: Path, entry: str) -> Path:
    """Puts somebody else's package where Python finds it; comes back with a file of its format."""
    (folder / "diary_format.py").write_text(DIARY)
    package = folder / "diary_format-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: diary-format\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(f"[crosswind.readers]\ndiary = {entry}\n")
    (folder / "notes.txt").write_text("dear diary\n")
    return folder / "notes.txt"


def test_a_reader_of_another_package_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    path = install(tmp_path, "diary_format:DiaryReader")
    assert reader_for(path).name == "diary"
    assert reader_for(path, "diary").name == "diary"
    with pytest.raises(InvalidInputError, match=r"expected one of: .*sacct.*, diary"):
        reader_for(path, "abacus")


def test_a_broken_package_is_named_and_hinders_only_its_own_format(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    path = install(tmp_path, "diary_format:NoSuchReader")
    with pytest.raises(UnavailableError, match=r"reader 'diary' \(diary_format:NoSuchReader\) cannot be loaded"):
        reader_for(path)
    assert reader_for(RECORDINGS / "sacct" / "slurm-22.05.txt").name == "sacct"
