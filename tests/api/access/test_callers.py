import base64
import os
from collections.abc import Mapping
from dataclasses import replace

import pytest
from starlette.testclient import TestClient
from tests.api.access.issuing import ADMIN, ANNA, NOBODY, bearer, expired, issued, revoked, stranger

from crosswind.api.app import create_app
from crosswind.api.peer import Peer
from crosswind.api.settings import ServerSettings
from crosswind.data.schema.access import TokenUse
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.store.store import Store

OWN = Peer("127.0.0.1", os.geteuid())
TOKEN = "0123456789abcdef0123"
LOOPBACK = ServerSettings()


def status(store: Store, settings: ServerSettings, peer: Peer, headers: Mapping[str, str] | None = None) -> int:
    return stranger(create_app(store, settings), headers, peer).get("/v1/runs").status_code


@pytest.mark.parametrize("peer", [OWN, Peer("127.0.0.1", 0), Peer("::1", 0), Peer(uid=0, is_unix=True)])
def test_this_user_and_root_need_no_token(store: Store, peer: Peer) -> None:
    assert status(store, LOOPBACK, peer) == 200
    assert status(store, replace(LOOPBACK, token=TOKEN), peer) == 200


@pytest.mark.parametrize("peer", [Peer("127.0.0.1", NOBODY), Peer("127.0.0.1"), Peer()])
def test_other_users_and_those_whom_the_kernel_cannot_place_do(store: Store, peer: Peer) -> None:
    assert status(store, LOOPBACK, peer) == 401


@pytest.mark.parametrize(
    "settings",
    [
        ServerSettings(require_token=True),
        ServerSettings(root_path="/node/n1/8000"),
        ServerSettings(host="0.0.0.0", token=TOKEN),
    ],
)
def test_a_server_that_requires_it_is_behind_a_proxy_or_listens_elsewhere_takes_no_exemption(
    store: Store, settings: ServerSettings
) -> None:
    assert status(store, settings, OWN) == 401


@pytest.mark.parametrize(
    "name", ["Forwarded", "Via", "X-Forwarded-For", "x-forwarded-proto", "X-Forwarded-User", "X-Real-IP"]
)
def test_what_came_through_a_proxy_needs_a_token_whoever_runs_the_proxy(store: Store, name: str) -> None:
    assert status(store, LOOPBACK, OWN, {name: "anna"}) == 401
    assert status(store, LOOPBACK, Peer(uid=0, is_unix=True), {name: "anna"}) == 401
    secret = issued(store, ANNA).secret
    assert status(store, LOOPBACK, OWN, {name: "anna", **bearer(secret)}) == 200


def test_a_person_at_a_socket_that_is_open_to_others_is_known_by_the_kernel(store: Store) -> None:
    client = stranger(create_app(store), peer=Peer(uid=NOBODY, is_unix=True))
    assert client.get("/v1/runs").status_code == 200
    refused = client.post("/v1/models/x:train")
    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/out-of-scope")
    assert "person nobody" in refused.json()["detail"]


@pytest.fixture
def others(store: Store) -> TestClient:
    return stranger(create_app(store, ServerSettings(token=TOKEN)))


def test_a_token_may_come_in_any_of_the_ways_that_clients_and_proxies_leave(others: TestClient, store: Store) -> None:
    secret = issued(store, ANNA).secret
    basic = base64.b64encode(f"anyone:{secret}".encode()).decode()
    proxys = base64.b64encode(b"anna:password of the proxy").decode()
    for headers in (
        bearer(secret),
        {"Authorization": f"bearer  {secret} "},
        {"Authorization": f"Basic {basic}"},
        {"X-Crosswind-Token": secret},
        {"X-Crosswind-Token": secret, "Authorization": f"Basic {proxys}"},
        {"X-Crosswind-Token": secret, "Authorization": "Negotiate YII="},
        bearer(TOKEN),
    ):
        assert others.get("/v1/runs", headers=headers).status_code == 200


def test_a_token_that_does_not_hold_is_refused_and_says_why(others: TestClient, store: Store) -> None:
    link = issued(store, ANNA, use=TokenUse.LINK).secret
    session = issued(store, ANNA, use=TokenUse.SESSION).secret
    for secret, reason in (
        (expired(store, ANNA), "the token has expired"),
        (revoked(store.catalog, issued(store, ANNA)), "the token was revoked"),
        (f"{issued(store, ANNA).secret[:-1]}-", "the token is unknown here"),
        (TOKEN[:-1], "the token is unknown here"),
        ("", "the token is unknown here"),
        (link, "the token is unknown here"),
        (session, "the token is unknown here"),
    ):
        answer = others.get("/v1/runs", headers=bearer(secret))
        assert (answer.status_code, answer.json()["detail"]) == (401, reason)
        assert "Bearer" in answer.headers["www-authenticate"]
        assert not secret or secret not in answer.text


def test_a_wrong_token_is_refused_also_where_none_is_needed(store: Store) -> None:
    assert status(store, LOOPBACK, OWN, bearer("x" * 46)) == 401


@pytest.mark.parametrize("name", ["Authorization", "X-Crosswind-Token"])
def test_a_token_that_is_given_twice_is_none(others: TestClient, store: Store, name: str) -> None:
    secret = issued(store, ANNA).secret
    value = f"Bearer {secret}" if name == "Authorization" else secret
    assert others.get("/v1/runs", headers=[(name, value), (name, value)]).status_code == 401  # type: ignore[arg-type]


def test_a_scheme_that_is_not_ours_is_no_token(store: Store) -> None:
    assert status(store, LOOPBACK, OWN, {"Authorization": "Negotiate YII="}) == 200
    assert status(store, LOOPBACK, Peer("127.0.0.1"), {"Authorization": "Negotiate YII="}) == 401


@pytest.mark.parametrize(
    ("proxy", "peer", "expected"),
    [
        ("192.0.2.7", Peer("192.0.2.7"), 200),
        ("2001:db8::7", Peer("2001:db8:0::7"), 200),
        ("192.0.2.7", Peer("192.0.2.8"), 401),
        ("192.0.2.7", Peer("127.0.0.1", NOBODY), 401),
        ("127.0.0.1@nobody", Peer("127.0.0.1", NOBODY), 200),
        ("127.0.0.1@nobody", Peer("127.0.0.1", NOBODY - 1), 401),
        ("127.0.0.1@nobody", Peer("127.0.0.1"), 401),
        ("unix@nobody", Peer(uid=NOBODY, is_unix=True), 200),
        ("unix@nobody", Peer(uid=NOBODY - 1, is_unix=True), 401),
        (None, Peer("192.0.2.7"), 401),
    ],
)
def test_a_header_names_the_user_from_the_trusted_proxy_alone(
    store: Store, proxy: str | None, peer: Peer, expected: int
) -> None:
    settings = ServerSettings(host="0.0.0.0", token=TOKEN, trusted_proxy=proxy, user_header="X-Remote-User")
    assert status(store, settings, peer, {"X-Remote-User": "anna", "X-Forwarded-For": "198.51.100.1"}) == expected


@pytest.mark.parametrize("name", ["", " anna", "an\tna", "a" * 201])
def test_a_proxy_that_names_no_login_name_is_refused(store: Store, name: str) -> None:
    settings = ServerSettings(host="0.0.0.0", token=TOKEN, trusted_proxy="192.0.2.7")
    assert status(store, settings, Peer("192.0.2.7"), {"X-Forwarded-User": name}) == 401


def test_a_proxy_that_names_two_users_names_neither(store: Store) -> None:
    settings = ServerSettings(host="0.0.0.0", token=TOKEN, trusted_proxy="192.0.2.7")
    client = stranger(create_app(store, settings), peer=Peer("192.0.2.7"))
    twice = [("X-Forwarded-User", "anna"), ("X-Forwarded-User", "ben")]
    refused = client.get("/v1/runs", headers=twice)  # type: ignore[arg-type]
    assert (refused.status_code, "expected one login name" in refused.json()["detail"]) == (401, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("127.0.0.1", "name the proxy's own user, as in 127.0.0.1@apache"),
        ("::1", "name the proxy's own user"),
        ("unix", "name the proxy's own user"),
        ("unix@no such user", "user 'no such user' is not on this machine"),
        ("192.0.2.7@nobody", "is the user known"),
        ("portal.example", "expected the IP address"),
        ("", "expected the IP address"),
    ],
)
def test_a_proxy_that_others_could_pretend_to_be_is_refused(store: Store, text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        create_app(store, ServerSettings(trusted_proxy=text))


@pytest.mark.parametrize("path", ["/runs", "/checks", "/studies"])
def test_a_page_without_rows_says_that_these_are_all_that_one_may_see(store: Store, path: str) -> None:
    app = create_app(store)
    of_anna = stranger(app, bearer(issued(store, ANNA).secret))
    of_support = stranger(app, bearer(issued(store, ADMIN).secret))
    assert ["that you may see" in client.get(path).text for client in (of_anna, of_support)] == [True, False]
    assert "crosswind-damaged-files" not in of_support.get(path).headers
