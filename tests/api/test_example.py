import lzma
import sqlite3
import stat
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import pytest
from tests.api.two_users import ANN, MARK, asking_as, fill
from tests.serving import own_client

from crosswind.api.app import create_app
from crosswind.api.example import Example
from crosswind.data import samples
from crosswind.data.catalog.database import HEAD
from crosswind.data.samples.example import CATALOG
from crosswind.data.schema.access import OWNER, Scope
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.store.store import Store
from crosswind.models.explain.stored import stored_explanations

HTML = {"Accept": "text/html"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_one_store_is_made_for_everybody_who_asks_at_once_and_goes_with_them(place: Path) -> None:
    example = Example()
    with ThreadPoolExecutor(64) as pool:
        clients = set(pool.map(attrgetter("client"), [example] * 64))
    assert len(clients) == 1
    [folder] = place.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in folder.rglob("*")} == {0}
    assert len(example.client.runs(limit=500)) == 437
    example.client.store.close()
    clients.clear()
    del example
    assert not list(place.iterdir())


def test_the_catalog_that_ships_is_of_this_version(tmp_path: Path) -> None:
    anew = "make it anew: python -m crosswind.models.example"
    path = tmp_path / "catalog.sqlite"
    path.write_bytes(lzma.decompress((Path(samples.__path__[0]) / "example" / CATALOG).read_bytes()))
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("select version_num from alembic_version").fetchall() == [(HEAD,)], anew
    with Store.open(tmp_path) as store, store.catalog.read() as session:
        assert session.runs.count() == 437
        assert [*session.verdicts.due_features(1), *session.verdicts.due_verdicts(1)] == [], anew


def test_without_room_for_it_pages_are_the_readers_own(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(place / "nowhere"))
    with pytest.raises(UnavailableError, match="the example cannot be made"):
        _ = Example().client
    with Store.open(tmp_path / "store") as store, own_client(create_app(store)) as client:
        assert "<h1>No run is stored yet.</h1>" in client.get("/runs", headers=HTML).text
        assert client.get("/example/runs").status_code == 503


def test_the_example_is_the_same_for_all_who_may_read_and_says_nothing_of_others_rows(tmp_path: Path) -> None:
    agent = replace(ANN, scopes=frozenset({Scope.INGEST}))
    with Store.open(tmp_path / "store") as store:
        fill(store)
        app = create_app(store)
        ann, owner = asking_as(app, ANN), asking_as(app, OWNER)
        for address in ("/example/variability", "/example/links.json", "/example/studies", "/example/stragglers.csv"):
            said = ann.get(address)
            assert said.status_code == 200
            assert said.text == owner.get(address).text
            assert MARK not in said.text
        assert asking_as(app, agent).get("/example/runs").status_code == 403
        stranger = asking_as(app, ANN)
        stranger.headers["Authorization"] = "Bearer nothing"
        assert stranger.get("/example/runs").status_code == 401


def test_a_reader_who_may_see_nothing_gets_the_example(tmp_path: Path) -> None:
    zoe = replace(ANN, name="zoe", user="zoe", accounts=frozenset())
    with Store.open(tmp_path / "store") as store:
        fill(store)
        said = asking_as(create_app(store), zoe).get("/runs", headers=HTML).text
        assert '<section class="example"' in said
        assert MARK not in said
        assert "ann" not in said.replace("channel", "")


def test_what_ships_was_computed_by_the_rules_of_today(place: Path) -> None:
    store = Example().client.store
    with store.catalog.read() as session:
        runs = [run.run_id for run in session.runs.find(limit=500)]
        due = session.verdicts.due_features(1) + session.verdicts.due_verdicts(1)
    assert due == []
    assert len(stored_explanations(store, runs)) == len(runs), "make it again: python -m crosswind.models.example"
