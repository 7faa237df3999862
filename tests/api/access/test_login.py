import logging
import time
from http.cookies import SimpleCookie

import anyio
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.api.access.issuing import ANNA, bearer, issued, revoked, stranger
from tests.serving import own_client

from crosswind.api.access.attempts import FAILURES_MAX, WINDOW_SECONDS, Attempts
from crosswind.api.access.credentials import COOKIE
from crosswind.api.app import create_app
from crosswind.api.peer import Peer
from crosswind.api.settings import ServerSettings
from crosswind.data.schema.access import TokenUse
from crosswind.data.schema.login import login_name
from crosswind.data.store.store import Store

HTML = {"Accept": "text/html,*/*;q=0.8"}
TOKEN = "0123456789abcdef0123"


@pytest.fixture
def app(store: Store) -> FastAPI:
    return create_app(store)


@pytest.fixture
def browser(app: FastAPI) -> TestClient:
    """Return the browser of somebody whom the kernel does not know."""
    return stranger(app, HTML)


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the seconds for which answers were held back, without waiting for them."""
    seconds: list[float] = []

    async def nap(wanted: float) -> None:
        seconds.append(wanted)
        await anyio.lowlevel.checkpoint()

    monkeypatch.setattr("crosswind.api.routes.login.sleep", nap)
    return seconds


def test_a_browser_without_a_session_is_led_to_the_login_page_and_back(browser: TestClient, store: Store) -> None:
    led = browser.get("/runs/r1?tab=steps")
    assert (led.status_code, led.headers["location"]) == (303, "../login?next=%2Fruns%2Fr1%3Ftab%3Dsteps")
    page = browser.get("/login?next=%2Fruns%2Fr1%3Ftab%3Dsteps")
    assert (page.status_code, 'name="token"' in page.text, page.headers["cache-control"]) == (200, True, "no-store")
    assert 'value="/runs/r1?tab=steps"' in page.text
    began = browser.post("/login", data={"token": f" {issued(store, ANNA).secret} ", "next": "/runs/r1?tab=steps"})
    assert (began.status_code, began.headers["location"]) == (303, "./runs/r1?tab=steps")
    assert browser.get("/models").status_code == 200
    assert "You are anna." in browser.get("/login").text


def test_a_session_is_a_cookie_that_scripts_and_other_sites_do_not_get(app: FastAPI, store: Store) -> None:
    secret, browser = issued(store, ANNA).secret, stranger(app, HTML)
    for headers, is_secure in (({}, False), ({"X-Forwarded-Proto": "https"}, True)):
        began = browser.post("/login", data={"token": secret}, headers=headers)
        cookie = SimpleCookie(began.headers["set-cookie"])[COOKIE]
        assert (cookie["httponly"], cookie["samesite"].lower(), cookie["path"]) == (True, "strict", "/")
        assert (bool(cookie["secure"]), cookie["max-age"]) == (is_secure, "43200")
        assert cookie.value != secret
    behind_tls = stranger(app, url="https://localhost")
    assert "Secure" in behind_tls.post("/login", data={"token": secret}).headers["set-cookie"]


def test_a_session_may_no_more_than_its_token(browser: TestClient, store: Store) -> None:
    browser.post("/login", data={"token": issued(store, ANNA).secret})
    assert browser.get("/v1/runs").status_code == 200
    assert browser.post("/v1/models/x:train").status_code == 403


def test_a_session_ends_with_its_token_and_by_logging_out_on_the_server_too(app: FastAPI, store: Store) -> None:
    made, browser = issued(store, ANNA), stranger(app, HTML)
    browser.post("/login", data={"token": made.secret})
    cookie = {"Cookie": f"{COOKIE}={browser.cookies[COOKIE]}"}
    left = browser.post("/logout")
    assert (left.status_code, left.headers["location"], COOKIE in browser.cookies) == (303, "login", False)
    assert stranger(app, cookie).get("/v1/runs").status_code == 401
    browser.post("/login", data={"token": made.secret})
    revoked(store.catalog, made)
    time.sleep(0.6)
    refused = browser.get("/v1/runs", headers={"Accept": "*/*"})
    assert (refused.status_code, refused.json()["detail"]) == (401, "the session has ended: log in again")


def test_a_link_logs_in_once_and_only_when_its_button_is_pressed(app: FastAPI, store: Store) -> None:
    link = issued(store, ANNA, use=TokenUse.LINK).secret
    for _ in range(2):  # as a preview of the link would
        page = stranger(app, HTML).get("/login", params={"link": link})
        assert ("This link logs this browser in, once." in page.text, link in page.text) == (True, True)
    first, second = stranger(app, HTML), stranger(app, HTML)
    assert first.post("/login", data={"link": link}).headers["location"] == "./"
    assert first.get("/runs").status_code == 200
    again = second.post("/login", data={"link": link})
    assert (again.status_code, "was used already" in again.text, COOKIE in second.cookies) == (401, True, False)


def test_the_session_of_a_link_outlives_it_but_not_the_token_that_made_it(app: FastAPI, store: Store) -> None:
    made = issued(store, ANNA)
    client = stranger(app, bearer(made.secret))
    link = client.post("/v1/tokens:link", json={}).json()["secret"]
    browser = stranger(app, HTML)
    browser.post("/login", data={"link": link})
    assert browser.get("/runs").status_code == 200
    revoked(store.catalog, made)
    time.sleep(0.6)
    assert browser.get("/runs").status_code == 303


def test_sessions_of_the_configured_token_end_when_it_changes(store: Store) -> None:
    browser = stranger(create_app(store, ServerSettings(token=TOKEN)), HTML)
    browser.post("/login", data={"token": TOKEN})
    cookie = {"Cookie": f"{COOKIE}={browser.cookies[COOKIE]}"}
    assert browser.get("/metrics").status_code == 200
    restarted = stranger(create_app(store, ServerSettings(token=f"{TOKEN}4")), cookie)
    assert restarted.get("/metrics").status_code == 401
    assert stranger(create_app(store, ServerSettings(token=TOKEN)), cookie).get("/metrics").status_code == 200


@pytest.mark.parametrize(
    ("wanted", "location"),
    [
        ("/models", "./models"),
        ("//evil.example/x", "./evil.example/x"),
        ("/https://evil.example", "./https://evil.example"),
        ("/\\evil.example", "./evil.example"),
        ("https://evil.example", "./"),
        ("", "./"),
        ("/", "./"),
    ],
)
def test_nobody_is_led_to_another_server(browser: TestClient, store: Store, wanted: str, location: str) -> None:
    began = browser.post("/login", data={"token": issued(store, ANNA).secret, "next": wanted})
    assert began.headers["location"] == location


def test_failed_logins_are_slowed_then_refused_and_logged_twice(
    app: FastAPI, store: Store, naps: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    browser = stranger(app, HTML, Peer("192.0.2.1"))
    with caplog.at_level(logging.WARNING, "crosswind.access"):
        failed = [browser.post("/login", data={"token": f"guess {number}"}) for number in range(FAILURES_MAX + 5)]
    assert [answer.status_code for answer in failed] == [401] * FAILURES_MAX + [429] * 5
    assert naps == sorted(naps)
    assert (naps[0], naps[-1]) == (0.25, 2.0)
    assert "The token is unknown here." in failed[0].text
    assert 0 < int(failed[-1].headers["retry-after"]) <= WINDOW_SECONDS
    assert [record.getMessage() for record in caplog.records] == [
        "a login from 192.0.2.1 failed: the token is unknown here",
        "10 logins from 192.0.2.1 failed within a minute: more are refused",
    ]
    good = {"token": issued(store, ANNA).secret}
    assert browser.post("/login", data=good).status_code == 429
    assert stranger(app, HTML, Peer("192.0.2.2")).post("/login", data=good).status_code == 303


def test_users_of_one_machine_do_not_lock_out_one_another(app: FastAPI, store: Store, naps: list[float]) -> None:
    guesser = stranger(app, HTML, Peer("127.0.0.1", 1001))
    for _ in range(FAILURES_MAX):
        guesser.post("/login", data={"token": "guess"})
    other = stranger(app, HTML, Peer("127.0.0.1", 1002))
    assert other.post("/login", data={"token": issued(store, ANNA).secret}).status_code == 303
    assert len(naps) == FAILURES_MAX


def test_a_place_may_try_again_after_a_minute() -> None:
    now = [0.0]
    attempts = Attempts(lambda: now[0])
    for _ in range(FAILURES_MAX):
        attempts.fail("here", "no")
    now[0] = WINDOW_SECONDS - 1
    assert (attempts.wait_seconds("here"), attempts.wait_seconds("there")) == (1.0, 0.0)
    now[0] = WINDOW_SECONDS
    assert attempts.wait_seconds("here") == 0.0
    assert attempts.fail("here", "no") == 0.25


def test_places_are_remembered_in_bounded_number() -> None:
    attempts = Attempts()
    for number in range(5000):
        attempts.fail(f"place {number}", "no")
    assert len(attempts._windows) == 2000


@pytest.mark.parametrize(
    ("content", "kind", "expected"),
    [
        (b"token=a&token=b", "application/x-www-form-urlencoded", 400),
        (b"token=%ff", "application/x-www-form-urlencoded", 400),
        (b"token", "application/x-www-form-urlencoded", 400),
        (b"token=%00", "application/x-www-form-urlencoded", 400),
        (b"next=/runs", "application/x-www-form-urlencoded", 422),
        (b"a=b&" * 3000, "application/x-www-form-urlencoded", 413),
        (b'{"token": "x"}', "application/json", 415),
    ],
)
def test_what_is_no_login_form_is_refused(browser: TestClient, content: bytes, kind: str, expected: int) -> None:
    assert browser.post("/login", content=content, headers={"Content-Type": kind}).status_code == expected


def test_another_sites_form_logs_nobody_in_or_out(browser: TestClient, store: Store) -> None:
    evil = {"Origin": "http://evil.example"}
    assert browser.post("/login", data={"token": issued(store, ANNA).secret}, headers=evil).status_code == 403
    assert browser.post("/logout", headers=evil).status_code == 403


def test_programs_get_a_challenge_and_no_page(app: FastAPI) -> None:
    assert stranger(app).get("/runs").status_code == 401
    assert stranger(app, HTML).post("/v1/predictions", json={}).status_code == 401


def test_whoever_runs_the_server_needs_no_login(app: FastAPI) -> None:
    page = own_client(app).get("/login", headers=HTML)
    assert (f"You are {login_name()}, by the connection" in page.text, "Log out" in page.text) == (True, False)
