"""Backups of a lake in an object store, which are as those of one in a folder, and lead from one to the other."""

from pathlib import Path

import pytest
from tests.data.backup.test_backup_while_retiring import backed_up_meanwhile
from tests.data.lake.objects.store_of_objects import setting_of
from tests.data.lake.objects.test_mirror import expected, merge, put, rows_of
from tests.serving import serving

from crosswind.data.backup.store import back_up, check_backup, restore
from crosswind.data.schema.errors import ConflictError
from crosswind.data.schema.lake_address import LakeAddress
from crosswind.data.store.store import Store


def elsewhere(address: LakeAddress, prefix: str) -> LakeAddress:
    return LakeAddress(**{**vars(address), "prefix": prefix})


def test_a_lake_goes_from_a_bucket_to_a_folder_and_back(store: Store, address: LakeAddress, tmp_path: Path) -> None:
    put(store.lake, 0, 1)
    merge(store.lake)
    put(store.lake, 2)
    back_up(store, tmp_path / "first.tar")
    assert check_backup(tmp_path / "first.tar").files > 4
    restore(tmp_path / "first.tar", tmp_path / "local")
    with Store.open(tmp_path / "local") as local:
        assert rows_of(local.lake) == expected(3)
        merge(local.lake)
        put(local.lake, 3)
        back_up(local, tmp_path / "second.tar")
    other = elsewhere(address, "other")
    restore(tmp_path / "second.tar", tmp_path / "remote", lake=other)
    with Store.open(tmp_path / "remote", lake=other) as remote:
        assert rows_of(remote.lake) == expected(4)
        merge(remote.lake)
        assert rows_of(remote.lake) == expected(4)
    assert rows_of(store.lake) == expected(3)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_what_a_server_acknowledged_is_in_every_backup_once_whatever_was_retired_meanwhile(
    store: Store, address: LakeAddress, database: str, tmp_path: Path
) -> None:
    environment = {"CROSSWIND_LAKE": setting_of(address), "CROSSWIND_DATABASE": database}
    with serving(tmp_path / "server", environment=environment) as (url, _):
        backed_up_meanwhile(store, url, tmp_path, {**environment, "CROSSWIND_HOME": str(tmp_path / "retiring")})


def test_a_prefix_belongs_to_one_catalog(store: Store, address: LakeAddress, tmp_path: Path) -> None:
    put(store.lake, 0)
    with (
        Store.open(tmp_path / "stranger", lake=address) as stranger,
        pytest.raises(ConflictError, match="is another catalog's: expected a prefix that nobody uses"),
    ):
        put(stranger.lake, 1)


def test_another_prefix_is_not_taken_for_the_lake(
    store: Store, address: LakeAddress, database: str, tmp_path: Path
) -> None:
    put(store.lake, 0)
    refused = r"has no lake \(\.lake\), but the catalog's is .*: is CROSSWIND_LAKE that of the other servers"
    with Store.open(tmp_path / "wrong", database=database, lake=elsewhere(address, "typo")) as wrong:
        for act in (lambda: put(wrong.lake, 1), lambda: rows_of(wrong.lake), wrong.lake.storage.check):
            with pytest.raises(ConflictError, match=refused):
                act()
    assert rows_of(store.lake) == expected(1)


def test_a_store_whose_rows_are_elsewhere_is_refused(
    store: Store, address: LakeAddress, database: str, tmp_path: Path
) -> None:
    put(store.lake, 0)
    with pytest.raises(ConflictError, match="expected CROSSWIND_LAKE to name it"):
        Store.open(store.home, database=database)
    with Store.open(tmp_path / "local") as local:
        put(local.lake, 0)
    with pytest.raises(ConflictError, match="make a backup without CROSSWIND_LAKE"):
        Store.open(tmp_path / "local", lake=elsewhere(address, "new"))
