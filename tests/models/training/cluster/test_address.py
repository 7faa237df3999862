from collections.abc import Callable
from pathlib import Path

import pytest
from tests.data.lake.conftest import s3_port  # noqa: F401 - a fixture
from tests.data.lake.objects.store_of_objects import address_of, asked
from tests.data.lake.objects.test_mirror import put, rows_of

from crosswind.data.schema.errors import ConflictError, UnavailableError
from crosswind.data.store.store import Store
from crosswind.models.training.cluster.address import StoreAddress

BUCKET = "s3://bucket/lake"
OwnEnvironment = Callable[..., None]


@pytest.fixture
def of_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> OwnEnvironment:
    """Sets what a worker has in its environment."""

    def set_variables(**variables: str) -> None:
        for name in ("DATABASE", "LAKE", "LAKE_CACHE"):
            monkeypatch.delenv(f"CROSSWIND_{name}", raising=False)
        monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "of-worker"))
        for name, text in variables.items():
            monkeypatch.setenv(f"CROSSWIND_{name}", text)

    return set_variables


def test_a_store_in_a_folder_is_opened_there_whatever_the_worker_has(of_worker: OwnEnvironment, tmp_path: Path) -> None:
    of_worker(DATABASE="postgresql://nobody@nowhere/x", LAKE="s3://other")
    with Store.open(tmp_path / "home") as store:
        address = StoreAddress.of(store)
    with address.open() as opened:
        assert (opened.home, opened.address) == (tmp_path / "home", None)
        assert opened.catalog.engine.url.database == str(tmp_path / "home" / "catalog.sqlite")


def test_a_worker_that_does_not_see_the_folder_makes_none(of_worker: OwnEnvironment, tmp_path: Path) -> None:
    of_worker()
    home = tmp_path / "home"
    with pytest.raises(UnavailableError, match=r"sees no .*catalog\.sqlite: expected the home on a file system of all"):
        StoreAddress(home, home / "catalog.sqlite").open()
    with pytest.raises(UnavailableError, match=r"sees no .*set=step"):
        StoreAddress(home, home / "lake" / "set=step" / "date=2026-01-01", "postgresql://u@host/x").open()
    assert not home.exists()


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        ({}, "CROSSWIND_DATABASE of a worker is not set, expected postgresql://u@host/crosswind with what it needs"),
        (
            {"DATABASE": "postgresql+pg8000://u:hidden@host/test"},
            "is postgresql://u@host/test, expected postgresql://u@",
        ),
        (
            {"DATABASE": "postgresql://u:hidden@host/crosswind"},
            f"CROSSWIND_LAKE of a worker is not set, expected {BUCKET}",
        ),
        (
            {"DATABASE": "postgresql://u:hidden@host/crosswind", "LAKE": "s3://K:hidden@bucket/x"},
            "is s3://bucket/x, exp",
        ),
    ],
)
def test_a_worker_without_the_same_addresses_is_refused(
    own: dict[str, str], reason: str, of_worker: OwnEnvironment, tmp_path: Path
) -> None:
    of_worker(**own)
    with pytest.raises(UnavailableError, match=reason) as error:
        StoreAddress(tmp_path, None, "postgresql://u@host/crosswind", BUCKET).open()
    assert "hidden" not in str(error.value)


@pytest.mark.thorough
def test_a_lake_in_an_object_store_is_read_with_the_workers_own_keys(
    s3_port: int,  # noqa: F811
    of_worker: OwnEnvironment,
    tmp_path: Path,
) -> None:
    asked(s3_port, "PUT", "/bucket-of-workers")
    lake = address_of(s3_port, "bucket-of-workers")
    with Store.open(tmp_path / "home", lake=lake) as store:
        put(store.lake, 0)
        rows, address = rows_of(store.lake), StoreAddress.of(store)
    assert "testing" not in repr(address)
    options = f"region={lake.region}&scheme={lake.scheme}&endpoint_override={lake.endpoint}"
    of_worker(LAKE=f"s3://testing:testing@bucket-of-workers/lake?{options}")
    with address.open() as opened:
        assert rows_of(opened.lake) == rows != []
    with pytest.raises(ConflictError, match="expected CROSSWIND_LAKE"):
        StoreAddress(address.home, address.evidence).open()
