"""The page on the state of a server."""

import json
import logging
from pathlib import Path

import httpx2
import pytest
from tests.api.access.issuing import ANNA, bearer, issued, stranger
from tests.serving import own_client, serving

from crosswind.api.app import create_app
from crosswind.api.oidc_settings import OidcSettings
from crosswind.api.settings import ServerSettings
from crosswind.api.state.observed import Observed
from crosswind.api.state.recent import KINDS_MAX, RecentErrors
from crosswind.api.thread_beside import thread_beside
from crosswind.data.catalog.database import HEAD
from crosswind.data.store.store import Store

SECRETS = ("0123456789abcdef-token", "client-secret-text")


def test_it_says_what_is_well_and_configured_without_secrets(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:pass-word@collector:4318")
    oidc = OidcSettings("https://login.example", "c", "https://here.example", client_secret=SECRETS[1])
    client = own_client(create_app(store, ServerSettings(token=SECRETS[0], oidc=oidc, quota_bytes=7)))
    client.get("/v1/runs/none")
    page, facts = client.get("/status"), client.get("/status.json").json()
    assert (page.status_code, "<h1>The server is well.</h1>" in page.text) == (200, True)
    assert facts["checks"][0] == {"name": "the store can be read and written", "is_good": True, "detail": ""}
    for text in (page.text, json.dumps(facts)):
        assert not any(secret in text for secret in (*SECRETS, "pass-word", "user:"))
    configuration = facts["configuration"]
    assert (configuration["token"], configuration["oidc client secret"]) == ("set, not shown", "set, not shown")
    assert (configuration["quota bytes"], configuration["traces to"]) == ("7", "http://collector:4318")
    assert configuration["oidc issuer"] == "https://login.example"
    assert facts["versions"]["migration of the catalog"] == f"{HEAD} of {HEAD}"
    assert facts["answers"]["404"] == 1
    assert facts["stored"]["runs"] > 0
    assert facts["stored"]["lake files"] > 0
    uses = {use["name"]: use for use in facts["uses"]}
    assert (uses["connections"]["limit"], uses["batches"]["limit"], uses["answers"]["used"]) == (2000, 4, 0)


def test_what_is_wrong_is_said(store: Store) -> None:
    app = create_app(store)
    client = own_client(app)
    [path, *_] = sorted(store.home.glob("lake/set=step/date=*/part-*.parquet"))
    path.write_bytes(path.read_bytes()[:40])
    client.get("/v1/runs/r0/steps")
    list(store.lake.sets())
    errors = Observed.of(app).errors
    errors.emit(logging.LogRecord("crosswind.api", logging.ERROR, "", 0, "it <failed>", None, None))
    store.lake.frame("select count(*) from step")
    text = client.get("/status").text
    assert "1 check of the server failed." in text
    assert path.name in text
    assert "it &lt;failed&gt;" in text


def test_without_its_catalog_it_still_answers(store: Store) -> None:
    app = create_app(store)
    client = own_client(app)
    assert client.get("/status.json").json()["is_good"] is True
    store.close()
    for file in store.home.glob("catalog.sqlite*"):
        file.unlink()
    store.home.joinpath("catalog.sqlite").mkdir()
    Observed.of(app).readiness._checked = -10.0
    facts = client.get("/status.json").json()
    assert [check["name"] for check in facts["checks"] if not check["is_good"]] == [
        "the store can be read and written",
        "the catalog answers",
    ]
    assert client.get("/status").status_code == 200


def test_errors_are_counted_by_kind_and_bounded() -> None:
    errors = RecentErrors()
    log = logging.Logger("crosswind.x")
    log.addHandler(errors)
    for number in range(3):
        log.warning("number %d", number)
    try:
        raise KeyError("of anna")
    except KeyError:
        log.exception("failed")
    log.info("of no interest")
    assert [(kind.level, kind.count, kind.last) for kind in errors.kinds()] == [
        ("error", 1, "failed (KeyError)"),
        ("warning", 3, "number 2"),
    ]
    for number in range(2 * KINDS_MAX):
        errors.emit(logging.LogRecord(f"x{number}", logging.ERROR, "", 0, "y", None, None))
    assert len(errors.kinds()) == KINDS_MAX


def test_a_thread_notes_its_turns_and_its_end() -> None:
    with thread_beside(lambda ending: [None for _ in range(3) if not ending.wait(0.001)], "x", end_seconds=5) as ending:
        assert ending.thread is not None
        ending.thread.join(5)
        assert (ending.turns, ending.is_alive) == (3, False)
        assert ending.began_ns is not None
        assert ending.ended_ns is not None


def test_a_real_server_shows_its_threads_to_its_administrators_alone(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store"):
        pass
    with serving(tmp_path / "store") as (url, _):
        threads = httpx2.get(f"{url}status.json", timeout=30).json()["threads"]
        assert {thread["name"]: thread["is_alive"] for thread in threads} == dict.fromkeys(
            ("housekeeping", "background", "verdicts", "webhooks"), True
        )
        assert "Status of the server" in httpx2.get(f"{url}login", timeout=30).text


def test_people_do_not_see_it(store: Store) -> None:
    anna = stranger(create_app(store), bearer(issued(store, ANNA).secret))
    assert [anna.get(path).status_code for path in ("/status", "/status.json")] == [403, 403]
