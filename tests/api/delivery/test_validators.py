"""Validators: a client that has an answer gets 304, without the work where the route can tell before it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine
from starlette.testclient import TestClient
from tests.api.access.issuing import ANNA, BEN, bearer, issued, stranger

from crosswind.api.app import create_app
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store

STUDY = {"name": "n", "space": {"batch": {"kind": "int", "low": 1, "high": 64}}, "objective": "o"}


@contextmanager
def statements() -> Iterator[list[str]]:
    """Yield the statements that databases are sent meanwhile."""
    sent: list[str] = []

    def note(*arguments: object) -> None:
        sent.append(str(arguments[2]))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(Engine, "before_cursor_execute", note)


@pytest.mark.parametrize("path", ["/v1/runs", "/v1/run-outcomes", "/v1/studies", "/v1/studies/n/trials", "/v1/audit"])
def test_a_list_of_the_catalog_that_did_not_change_costs_no_query(client: TestClient, path: str) -> None:
    client.post("/v1/studies", json=STUDY)
    tag = client.get(path).headers["etag"]
    with statements() as sent:
        again = client.get(path, headers={"If-None-Match": f'"other", {tag}'})
    assert (again.status_code, again.content, again.headers["etag"], sent) == (304, b"", tag, [])
    assert "accept" in again.headers["vary"].lower()
    with statements() as sent:
        assert client.get(path).status_code == 200
    assert sent != []


def test_any_change_of_the_catalog_is_seen_and_the_same_content_is_still_not_sent(
    client: TestClient, store: Store
) -> None:
    tag = client.get("/v1/runs").headers["etag"]
    client.post("/v1/studies", json=STUDY)
    same = client.get("/v1/runs", headers={"If-None-Match": tag})
    assert (same.status_code, same.headers["etag"] != tag) == (304, True)
    with store.catalog.write() as session:
        session.runs.merge(Run("new", "nanogpt", "lab", RunState.RUNNING, started_ns=1))
    assert client.get("/v1/runs", headers={"If-None-Match": same.headers["etag"]}).status_code == 200


def test_another_server_over_the_same_file_sees_the_change(store: Store, client: TestClient) -> None:
    tag = client.get("/v1/runs").headers["etag"]
    with Store.open(store.home) as other, other.catalog.write() as session:
        session.runs.merge(Run("new", "nanogpt", "lab", RunState.RUNNING, started_ns=1))
    answer = client.get("/v1/runs", headers={"If-None-Match": tag})
    assert "new" in [run["run_id"] for run in answer.json()["runs"]]


def test_representations_of_one_list_have_tags_of_their_own(client: TestClient) -> None:
    paths = ("/v1/runs", "/v1/runs?format=csv", "/v1/runs?format=arrow", "/v1/runs?fields=run_id", "/v1/run-outcomes")
    tags = [client.get(path).headers["etag"] for path in paths]
    tags.append(client.get("/v1/runs", headers={"Accept": "text/csv"}).headers["etag"])
    assert len({tag.split(".")[0] for tag in tags}) == len(tags)
    assert all(tag.startswith('W/"') for tag in tags)
    assert client.get(paths[1], headers={"If-None-Match": tags[1]}).status_code == 304
    assert client.get(paths[2], headers={"If-None-Match": tags[1]}).status_code == 200


def test_a_tag_of_one_caller_is_of_no_use_to_another(store: Store) -> None:
    app = create_app(store)
    anna, ben = (stranger(app, bearer(issued(store, who).secret)) for who in (ANNA, BEN))
    path = "/v1/runs?fields=run_id"
    tag = anna.get(path).headers["etag"]
    assert tag.split(".")[0] != ben.get(path).headers["etag"].split(".")[0]


@pytest.mark.parametrize("path", ["steps", "steps?format=arrow", "stragglers", "replay"])
def test_what_is_of_one_ended_run_is_not_computed_again(client: TestClient, store: Store, path: str) -> None:
    first = client.get(f"/v1/runs/r0/{path}")
    assert first.status_code == 200
    shutil.rmtree(store.home / "lake")  # nothing can be computed any more
    again = client.get(f"/v1/runs/r0/{path}", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    with store.catalog.write() as session:
        session.verdicts.want_again(["r0"])  # as when a batch with rows of it lands
    later = client.get(f"/v1/runs/r0/{path}", headers={"If-None-Match": first.headers["etag"]})
    assert later.status_code != 304


def test_steps_of_a_run_in_progress_are_always_computed(client: TestClient, store: Store) -> None:
    with store.catalog.write() as session:
        session.runs.merge(Run("now", "nanogpt", "lab", RunState.RUNNING, started_ns=1))
    assert client.get("/v1/runs/now/steps").headers["etag"].startswith('W/".')


def test_the_version_of_a_catalog_in_postgresql_changes_with_every_commit(tmp_path: Path, postgres_url: str) -> None:
    with (
        Store.open(tmp_path, database=postgres_url) as one,
        Store.open(tmp_path, database=postgres_url) as two,
    ):
        versions = [one.catalog.version(), two.catalog.version()]
        assert versions[0] == versions[1]
        with two.catalog.write() as session:
            session.runs.merge(Run("new", "nanogpt", "lab", RunState.RUNNING, started_ns=1))
            assert one.catalog.version() == versions[0]  # nobody sees it yet
        assert one.catalog.version() == two.catalog.version() != versions[0]
