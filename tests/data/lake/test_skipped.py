"""Damaged files of the lake beside whole ones."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.api.conftest import STEP, run, step_columns
from tests.serving import own_client

from crosswind.api.app import create_app
from crosswind.data.lake.lake import Lake, to_table
from crosswind.data.lake.skipped import Skipped
from crosswind.data.schema.errors import MalformedError
from crosswind.data.store.store import Store

HARMS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut": lambda whole: whole[: len(whole) // 2],
    "zeros": lambda whole: bytes(len(whole)),
    "foreign": lambda _: b"hello, this is no Parquet file\n" * 9,
    "footer": lambda whole: whole[:-300] + b"\xff" * 250 + whole[-50:],
    "length": lambda whole: whole[:-8] + b"\xff\xff\xff\x7fPAR1",
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "home") as store:
        with store.catalog.write() as session:
            for number in range(8):
                session.runs.merge(run(f"r{number}", number))
        rows = to_table(STEP, step_columns())
        store.lake.append("good", rows)
        store.lake.append("bad", rows)
        yield store


def damage(store: Store, harm: Callable[[bytes], bytes]) -> str:
    [path] = store.home.glob("lake/set=step/date=*/part-bad.parquet")
    path.write_bytes(harm(path.read_bytes()))
    return str(path.relative_to(store.lake.root))


def count(lake: Lake) -> int:
    return int(lake.frame("select count(*) as rows from step")["rows"].iloc[0])


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_a_damaged_file_ends_a_query_or_is_passed_over_by_name(store: Store, harm: Callable[[bytes], bytes]) -> None:
    whole = count(store.lake)
    [path] = store.home.glob("lake/set=step/date=*/part-bad.parquet")
    before = path.read_bytes()
    name = damage(store, harm)
    store.lake.skipped = Skipped(store.lake.root)
    assert count(store.lake) == whole // 2
    assert store.lake.skipped.names == [name]
    path.write_bytes(before)
    assert (count(store.lake), store.lake.skipped.names) == (whole, [])


def test_without_that_the_damaged_file_is_named(store: Store) -> None:
    name = damage(store, HARMS["cut"])
    with pytest.raises(MalformedError, match=name):
        count(store.lake)


@pytest.mark.parametrize("harm", ["cut", "footer"])
def test_a_server_answers_without_them_and_names_them(store: Store, harm: str) -> None:
    client = own_client(create_app(store), base_url="http://localhost")
    name = damage(store, HARMS[harm])
    for path in ("/v1/runs/r0/steps", "/v1/runs/r0/report", "/v1/runs/r0/explanation", "/v1/run-outcomes"):
        assert client.get(path).status_code == 200, path
    assert len(client.get("/v1/runs/r0/steps", params={"limit": 500}).json()["steps"]) == 16
    assert client.get("/readyz").json()["coverage"] == {"damaged": 1, "files": [name]}
    assert client.get("/v1/runs").headers["crosswind-damaged-files"] == "1"
    page = client.get("/runs")
    assert (page.headers["crosswind-damaged-files"], "1 damaged file of the store" in page.text) == ("1", True)
    assert "crosswind_lake_damaged_files 1" in client.get("/metrics").text.splitlines()


def test_a_damaged_definition_is_passed_over_too(store: Store) -> None:
    for path in store.home.glob("lake/set=step/_schema-*.parquet"):
        path.write_bytes(b"PAR1")
    client = own_client(create_app(store), base_url="http://localhost")
    assert client.get("/v1/runs/r0/steps").status_code == 200
    assert client.get("/readyz").json()["coverage"]["damaged"] >= 1
