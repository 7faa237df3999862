"""A catalog and its lake know each other: another folder, an empty or an unmounted one is refused."""

import os
import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.api.segments import HEAT

from crosswind.data.backup.store import back_up, restore
from crosswind.data.lake.identity import MARK, make_mark, mark_in
from crosswind.data.schema.errors import ConflictError, UnavailableError
from crosswind.data.schema.lake_address import LakeAddress
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import load_spool
from crosswind.ingest.spool.spool import SpoolWriter


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty catalog that is in no home."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'catalog.sqlite'}"
    return str(request.getfixturevalue("postgres_url"))


def fill(store: Store) -> None:
    """Store three samples."""
    with SpoolWriter(store.home / "spool", "n1") as writer:
        columns = {"ts_ns": [1, 2, 3], "node": ["n1"] * 3, "device": ["cpu0"] * 3, "heat_celsius": [1, 2, 3]}
        writer.append_rows(HEAT, columns)
    assert load_spool(store, store.home / "spool").rows == 3


def rows_of(store: Store) -> int:
    return int(store.lake.frame("select count(*) as rows from heat")["rows"][0])


def without_identity(store: Store) -> None:
    """Make a store one of before: nothing says which lake is its."""
    with store.catalog.engine.begin() as connection:
        connection.execute(text("delete from lake_turns"))
    (store.home / "lake" / MARK).unlink()


def test_a_second_folder_on_one_catalog_is_refused(tmp_path: Path, database: str) -> None:
    with Store.open(tmp_path / "one", database=database):
        identity = mark_in(tmp_path / "one" / "lake")
    with pytest.raises(
        ConflictError, match=f"two/lake is no lake .* the catalog's rows are in lake {identity}: is its"
    ):
        Store.open(tmp_path / "two", database=database)
    assert not (tmp_path / "two" / "lake").exists()
    with Store.open(tmp_path / "three"):
        other = mark_in(tmp_path / "three" / "lake")
    with pytest.raises(ConflictError, match=f"is '{other}', but the catalog's rows are in lake {identity}"):
        Store.open(tmp_path / "three", database=database)
    Store.open(tmp_path / "one", database=database).close()


def test_of_several_who_open_at_once_one_has_the_lake(tmp_path: Path, database: str) -> None:
    Store.open(tmp_path / "away", database=f"sqlite:///{tmp_path / 'other.sqlite'}").close()
    begin = threading.Barrier(6)

    def opens(number: int) -> bool:
        begin.wait()
        try:
            Store.open(tmp_path / f"home{number % 3}", database=database).close()
        except ConflictError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(opens, range(6)))
    assert sum(outcomes) == 2  # both who have the same folder
    assert [(tmp_path / f"home{number}" / "lake" / MARK).is_file() for number in range(3)].count(True) == 1


def test_a_store_of_before_is_given_an_identity(tmp_path: Path, database: str) -> None:
    with Store.open(tmp_path / "home", database=database) as store:
        fill(store)
        without_identity(store)
    with Store.open(tmp_path / "home", database=database) as store:
        assert rows_of(store) == 3
    assert mark_in(tmp_path / "home" / "lake")
    with pytest.raises(ConflictError, match="no lake that was stored to"):
        Store.open(tmp_path / "other", database=database)


def test_an_empty_folder_is_not_taken_for_the_lake_of_a_catalog_with_rows(tmp_path: Path, database: str) -> None:
    with Store.open(tmp_path / "home", database=database) as store:
        fill(store)
        without_identity(store)
        shutil.move(tmp_path / "home" / "lake", tmp_path / "unmounted")
    for _ in range(2):
        with pytest.raises(ConflictError, match="lake is empty, but the catalog has noted rows: is its file"):
            Store.open(tmp_path / "home", database=database)
    assert not (tmp_path / "home" / "lake" / MARK).exists()
    shutil.move(tmp_path / "unmounted", tmp_path / "home" / "lake")
    with Store.open(tmp_path / "home", database=database) as store:
        assert rows_of(store) == 3
        shutil.move(tmp_path / "home" / "lake", tmp_path / "unmounted")
    with pytest.raises(ConflictError, match="is no lake that was stored to"):
        Store.open(tmp_path / "home", database=database)


def test_the_advice_of_the_message_lets_the_store_open(tmp_path: Path, database: str) -> None:
    Store.open(tmp_path / "home", database=database).close()
    shutil.rmtree(tmp_path / "home" / "lake")
    with pytest.raises(ConflictError) as refused:
        Store.open(tmp_path / "home", database=database)
    [(identity, mark)] = re.findall(r"write (\S+) into (\S+)", str(refused.value))
    Path(mark).parent.mkdir()
    Path(mark).write_text(identity + "\n")
    Store.open(tmp_path / "home", database=database).close()


def test_backups_and_copies_of_a_home_open(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a") as store:
        fill(store)
        back_up(store, tmp_path / "b.tar")
    restore(tmp_path / "b.tar", tmp_path / "c")
    shutil.copytree(tmp_path / "a", tmp_path / "d", symlinks=True)
    for name in "acd":
        with Store.open(tmp_path / name) as store:
            assert rows_of(store) == 3
    assert mark_in(tmp_path / "c" / "lake") != mark_in(tmp_path / "a" / "lake") == mark_in(tmp_path / "d" / "lake")


def test_a_restored_catalog_takes_the_lake_of_the_restored_home(tmp_path: Path, database: str) -> None:
    with Store.open(tmp_path / "a") as store:
        fill(store)
        back_up(store, tmp_path / "b.tar")
    Store.open(tmp_path / "early", database=database).close()
    restore(tmp_path / "b.tar", tmp_path / "c", database=database)
    with Store.open(tmp_path / "c", database=database) as store:
        assert rows_of(store) == 3


def test_a_lake_outlives_its_catalog(tmp_path: Path) -> None:
    with Store.open(tmp_path / "home") as store:
        fill(store)
    before = mark_in(tmp_path / "home" / "lake")
    for path in (tmp_path / "home").glob("catalog.sqlite*"):
        path.unlink()
    with Store.open(tmp_path / "home") as store:
        assert rows_of(store) == 3
    assert mark_in(tmp_path / "home" / "lake") == before


def test_objects_beside_the_folder_of_another_server_are_refused(tmp_path: Path, database: str) -> None:
    Store.open(tmp_path / "one", database=database).close()
    address = LakeAddress("bucket")
    with pytest.raises(ConflictError, match="a folder that another server has, but CROSSWIND_LAKE is s3://bucket"):
        Store.open(tmp_path / "two", database=database, lake=address)
    for _ in range(2):  # an empty home may change to an object store, and then others of the same catalog
        Store.open(tmp_path / "one", database=database, lake=address).close()
    Store.open(tmp_path / "two", database=database, lake=address).close()


def test_a_mark_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    (tmp_path / "lake" / MARK).unlink()
    (tmp_path / "lake" / MARK).mkdir()
    with pytest.raises(UnavailableError, match=r"lake/\.lake cannot be read: Is a directory"):
        Store.open(tmp_path)


def test_a_mark_is_made_once_and_whole_also_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_mark(tmp_path / "a", "first")
    make_mark(tmp_path / "a", "second")
    assert mark_in(tmp_path / "a") == "first"

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    make_mark(tmp_path / "b", "first")
    assert (mark_in(tmp_path / "b"), list((tmp_path / "b").iterdir())) == ("first", [tmp_path / "b" / MARK])
    (tmp_path / "file").touch()
    with pytest.raises(UnavailableError, match="cannot be marked"):
        make_mark(tmp_path / "file", "first")
