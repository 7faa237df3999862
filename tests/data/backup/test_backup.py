"""Backups of a store while it is written to, and what comes back of them."""

import io
import json
import shutil
import stat
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from tests.api.segments import HEAT, headers_of, stored_rows
from tests.serving import answering

from crosswind.cli.main import main
from crosswind.data.backup.archive import MANIFEST
from crosswind.data.backup.store import RESTORING, back_up, check_backup, restore
from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.database import open_database
from crosswind.data.schema.errors import ConflictError, MalformedError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import load_spool
from crosswind.ingest.spool.spool import SpoolWriter, sealed_segments


def recorded(spool: Path, number: int) -> Path:
    """Return a segment with one run and three samples, which both have this number."""
    with SpoolWriter(spool, "n1") as writer:
        writer.append_record("run", {"run_id": f"r{number}", "workload": "w", "system": "lab", "state": "running"})
        nodes = [f"r{number}"] * 3
        columns = {"ts_ns": [1, 2, 3], "node": nodes, "device": ["cpu0"] * 3, "heat_celsius": [1, 2, 3]}
        writer.append_rows(HEAT, columns)
    return sealed_segments(spool)[-1]


def run_ids(catalog: Catalog) -> set[str]:
    with catalog.read() as session:
        return {run.run_id for run in session.runs.find(limit=10_000)}


def fill(home: Path, database: str | None = None) -> None:
    """Make a store with two runs, a model's file, a pseudonym and a topology."""
    with Store.open(home, database=database) as store:
        for number in range(2):
            recorded(home / "spool", number)
        load_spool(store, home / "spool")
        with store.catalog.write() as session:
            session.people.pseudonyms(["anna"])
        (home / "models" / "run-seconds").mkdir(parents=True)
        (home / "models" / "run-seconds" / "1.cwm").write_bytes(b"a model")
        (home / "models" / "fitted").mkdir()
        (home / "models" / "fitted" / "x.cwm").write_bytes(b"one that may go")
        (home / "topology.conf").write_text("SwitchName=s1 Nodes=n1\n")


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> str | None:
    return None if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    fill(tmp_path / "a")
    with Store.open(tmp_path / "a") as store:
        back_up(store, tmp_path / "b.tar")
    return tmp_path / "b.tar"


def test_everything_comes_back_from_either_database_into_either(tmp_path: Path, database: str | None) -> None:
    fill(tmp_path / "a", database)
    with Store.open(tmp_path / "a", database=database) as store:
        back_up(store, tmp_path / "b.tar")
    made = restore(tmp_path / "b.tar", tmp_path / "c")
    assert stored_rows(tmp_path / "c") == [(f"r{number}", moment) for number in range(2) for moment in (1, 2, 3)]
    with Store.open(tmp_path / "c") as back:
        assert run_ids(back.catalog) == {"r0", "r1"}
        with back.catalog.read() as session:
            assert (session.ingested().batches, session.people.pseudonym("anna") is not None) == (2, True)
    assert (tmp_path / "c" / "models" / "run-seconds" / "1.cwm").read_bytes() == b"a model"
    assert not (tmp_path / "c" / "models" / "fitted").exists()
    assert (tmp_path / "c" / "topology.conf").read_text() == "SwitchName=s1 Nodes=n1\n"
    assert made == check_backup(tmp_path / "b.tar")
    files = [path for path in (tmp_path / "c").rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in [*files, tmp_path / "b.tar"]} == {0o600}
    if database is not None:
        with pytest.raises(ConflictError, match="the database is not empty"):
            restore(tmp_path / "b.tar", tmp_path / "d", database=database)


def test_a_backup_of_sqlite_goes_into_postgresql(archive: Path, tmp_path: Path, postgres_url: str) -> None:
    restore(archive, tmp_path / "c", database=postgres_url)
    assert not (tmp_path / "c" / "catalog.sqlite").exists()
    engine = open_database(postgres_url)
    assert run_ids(Catalog(engine)) == {"r0", "r1"}
    engine.dispose()


def test_a_folder_holds_the_same(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with Store.open(tmp_path / "a") as store:
        back_up(store, tmp_path / "folder")
        with pytest.raises(ConflictError, match="expected an empty folder"):
            back_up(store, tmp_path / "folder")
        with pytest.raises(ConflictError, match="is there already"):
            back_up(store, archive)
    assert check_backup(tmp_path / "folder").files == check_backup(archive).files
    (tmp_path / "folder" / "models" / "run-seconds" / "1.cwm").write_bytes(b"A model")
    with pytest.raises(MalformedError, match=r"models/run-seconds/1\.cwm is not what was stored"):
        restore(tmp_path / "folder", tmp_path / "c")
    assert not (tmp_path / "c" / "catalog.sqlite").exists()


def test_a_store_that_holds_something_stays(archive: Path, tmp_path: Path) -> None:
    with pytest.raises(ConflictError, match=r"catalog\.sqlite is not empty"):
        restore(archive, tmp_path / "a")
    with Store.open(tmp_path / "c") as empty:
        assert run_ids(empty.catalog) == set()
    restore(archive, tmp_path / "c")
    (tmp_path / "d" / "lake" / "set=heat").mkdir(parents=True)
    (tmp_path / "d" / "lake" / "set=heat" / "x.parquet").touch()
    with pytest.raises(ConflictError, match="lake is not empty"):
        restore(archive, tmp_path / "d")
    (tmp_path / "e" / RESTORING).mkdir(parents=True)
    with pytest.raises(ConflictError, match="another restore runs, or was cut off"):
        restore(archive, tmp_path / "e")


Member = tuple[tarfile.TarInfo, bytes]


def harmed(archive: Path, name: str) -> Path:
    """Return the archive after this harm to its members."""
    with tarfile.open(archive) as tar:
        members = [(member, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]
    [number] = [number for number, (member, _) in enumerate(members) if member.name == "models/run-seconds/1.cwm"]
    HARMS[name](members, number)
    with tarfile.open(archive, "w") as tar:
        for member, content in members:
            member.size = 0 if member.issym() else len(content)
            tar.addfile(member, io.BytesIO(content))
    return archive


def link() -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo("lake/link")
    member.type, member.linkname = tarfile.SYMTYPE, "/etc"
    return member, b""


def newer(manifest: bytes) -> bytes:
    return json.dumps(json.loads(manifest) | {"form": 2}).encode()


HARMS: dict[str, Callable[[list[Member], int], None]] = {  # the number is that of a model's file
    "changed": lambda members, number: members.__setitem__(number, (members[number][0], b"A MODEL")),
    "missing": lambda members, number: members.__delitem__(number),
    "further": lambda members, _: members.insert(0, (tarfile.TarInfo("lake/more"), b"x")),
    "climbs": lambda members, _: members.insert(0, (tarfile.TarInfo("lake/../../x"), b"x")),
    "elsewhere": lambda members, _: members.insert(0, (tarfile.TarInfo("/etc/passwd"), b"x")),
    "link": lambda members, _: members.insert(0, link()),
    "newer": lambda members, _: members.__setitem__(-1, (members[-1][0], newer(members[-1][1]))),
    "manifest": lambda members, _: members.__setitem__(-1, (members[-1][0], b"{}")),
}


@pytest.mark.parametrize(
    ("harm", "expected"),
    [
        ("changed", "1.cwm is not what was stored"),
        ("missing", "1.cwm is missing"),
        ("further", "lake/more is not in its manifest"),
        ("climbs", "'lake/../../x' is no file of a store"),
        ("elsewhere", "'/etc/passwd' is no file of a store"),
        ("link", "'lake/link' is no plain file"),
        ("newer", "update Crosswind"),
        ("manifest", "expected the manifest of a backup"),
    ],
)
def test_what_is_wrong_in_a_backup_is_named_and_nothing_is_restored(
    archive: Path, tmp_path: Path, harm: str, expected: str
) -> None:
    with pytest.raises((MalformedError, ConflictError)) as error:
        restore(harmed(archive, harm), tmp_path / "c")
    assert expected in str(error.value)
    assert list((tmp_path / "c").iterdir()) == []


@pytest.mark.parametrize("share", [0.0, 0.3, 0.97])
def test_a_backup_that_was_cut_off_is_none(archive: Path, tmp_path: Path, share: float) -> None:
    with tarfile.open(archive) as tar:
        end = max(member.offset_data for member in tar if member.name == MANIFEST)
    archive.write_bytes(archive.read_bytes()[: int(end * share)])
    with pytest.raises(MalformedError, match="cut off"):
        restore(archive, tmp_path / "c")


def wait_until(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not is_true():
        assert time.monotonic() < end, "nothing was acknowledged for 30 s"
        time.sleep(0.01)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    with Store.open(tmp_path / "a"):
        yield tmp_path / "a"


def test_a_backup_while_a_server_stores_has_all_that_was_acknowledged_and_whole_batches_alone(
    home: Path, tmp_path: Path
) -> None:
    acknowledged: list[str] = []
    is_over = threading.Event()

    def send(url: str, first: int) -> None:
        number, spool = first, tmp_path / f"spool{first}"
        while not is_over.is_set():
            path = recorded(spool, number)
            answer = httpx2.post(f"{url}v1/ingest/batches", content=path.read_bytes(), headers=headers_of(path))
            assert answer.status_code == 201
            acknowledged.append(f"r{number}")
            path.unlink()
            number += 1

    with answering(home) as url:
        senders = [threading.Thread(target=send, args=(url, 10_000 * number)) for number in range(1, 4)]
        for sender in senders:
            sender.start()
        befores = []
        with Store.open(home) as store:
            for number in range(3):
                befores.append(set(acknowledged))
                back_up(store, tmp_path / f"{number}.tar")
        is_over.set()
        for sender in senders:
            sender.join()
    for number, before in enumerate(befores):
        restore(tmp_path / f"{number}.tar", tmp_path / f"back{number}")
        rows = stored_rows(tmp_path / f"back{number}")
        with Store.open(tmp_path / f"back{number}") as back:
            runs = run_ids(back.catalog)
            with back.catalog.read() as session:
                assert session.ingested().batches == len(runs)
        assert before <= runs
        assert {(run, moment) for run in runs for moment in (1, 2, 3)} <= set(rows)
        assert len(rows) - 3 * len(runs) <= 3 * len(befores)  # of batches that were not acknowledged yet
        shutil.rmtree(tmp_path / f"back{number}")


def test_the_verbs_make_check_and_restore(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store.open(home) as store, store.catalog.write() as session:
        session.runs.merge(Run("r1", "w", "lab", RunState.COMPLETED))
    monkeypatch.setenv("CROSSWIND_HOME", str(home))
    file = str(tmp_path / "b.tar")
    assert main(["backup", file]) == 0
    assert main(["restore", "--check", file]) == 0
    assert main(["restore", file]) != 0
    assert "is not empty" in capsys.readouterr().err
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "new"))
    assert main(["restore", "--json", file]) == 0
    assert json.loads(capsys.readouterr().out)["files"] >= 1
    assert main(["backup", file]) != 0
    assert main(["restore", "--check", f"{file}.none"]) == 75
    assert "b.tar.none: No such file" in capsys.readouterr().err
