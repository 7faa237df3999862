import base64
import json
from dataclasses import replace

import anyio
import pytest
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send
from tests.serving import own_client

from crosswind.api.app import LOOPBACK, create_app
from crosswind.api.body_check import BodyCheck, BodyRule
from crosswind.api.cross_site import host_name
from crosswind.api.edge.spool import MEMORY_BYTES, Spool
from crosswind.api.problems import KINDS
from crosswind.api.settings import ServerSettings
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.store.store import Store

TOKEN = "0123456789abcdef0123"


def stranger(store: Store, settings: ServerSettings = LOOPBACK) -> TestClient:
    """A client whom the kernel does not know."""
    return TestClient(create_app(store, settings), base_url="http://localhost:8000")


def client_of(store: Store, settings: ServerSettings, url: str = "http://localhost:8000") -> TestClient:
    return own_client(create_app(store, settings), base_url=url)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST.:1"])
def test_the_loopback_server_answers_to_loopback_names(client: TestClient, host: str) -> None:
    assert client.get("/v1/runs", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8000", "", "[::1"])
def test_a_strange_host_is_refused_as_dns_rebinding_would_bring_it(client: TestClient, host: str) -> None:
    answer = client.get("/v1/runs", headers={"Host": host})
    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/forbidden")
    assert "127.0.0.1, [::1], localhost" in answer.json()["detail"]


def test_a_proxys_name_is_let_in_where_it_is_set(store: Store) -> None:
    client = client_of(store, ServerSettings(hosts=("Portal.example",)))
    assert client.get("/v1/runs", headers={"Host": "portal.example"}).status_code == 200
    assert client.get("/v1/runs", headers={"Host": "other.example"}).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost.evil.example"])
def test_another_sites_form_cannot_write(client: TestClient, origin: str) -> None:
    answer = client.post("/v1/studies/s/trials/t:release", headers={"Origin": origin})
    assert (answer.status_code, "another site" in answer.json()["detail"]) == (403, True)


def test_our_own_pages_may_write_and_no_other_site_may_read(client: TestClient) -> None:
    answer = client.post("/v1/studies/s/trials/t:release", headers={"Origin": "http://localhost:8000"})
    assert answer.status_code == 404  # let in; there is no such study
    read = client.get("/v1/runs", headers={"Origin": "http://evil.example"})
    assert not [name for name in read.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "path", ["/v1/runs", "/readyz", "/metrics", "/openapi.json", "/", "/v1/nope", "/healthz/../v1/runs"]
)
def test_without_the_token_nothing_but_health_is_answered(store: Store, path: str) -> None:
    client = stranger(store, ServerSettings(token=TOKEN))
    for headers in (
        {},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic x"},
    ):
        answer = client.get(path, headers=headers)
        assert (answer.status_code, answer.json()["type"]) == (401, "/problems/unauthorized")
        assert "Bearer" in answer.headers["www-authenticate"]
        assert TOKEN not in answer.text


def test_health_and_problem_pages_need_no_token(store: Store) -> None:
    client = stranger(store, ServerSettings(token=TOKEN))
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/problems/unauthorized").status_code == 200


def test_the_token_lets_in_as_bearer_or_as_the_password_that_a_browser_asks_for(store: Store) -> None:
    client = stranger(store, ServerSettings(token=TOKEN))
    basic = base64.b64encode(f"anyone:{TOKEN}".encode()).decode()
    for given in (f"Bearer {TOKEN}", f"bearer {TOKEN}", f"Basic {basic}"):
        assert client.get("/v1/runs", headers={"Authorization": given}).status_code == 200


@pytest.mark.parametrize("path", ["/node/n1/8000/v1/runs", "/v1/runs"])
def test_a_proxys_prefix_may_be_cut_off_or_not(store: Store, path: str) -> None:
    client = client_of(store, ServerSettings(root_path="/node/n1/8000", token=TOKEN))
    client.headers["X-Crosswind-Token"] = TOKEN
    page = client.get(path, params={"limit": 2}).json()
    assert page["next_url"].startswith("/node/n1/8000/v1/runs?limit=2&cursor=")
    assert client.get(page["next_url"]).json()["runs"][0]["run_id"] == "r5"
    refused = client.get("/node/n1/8000/v1/runs/nope").json()
    assert client.get(refused["type"]).status_code == 200
    assert client.get("/node/n1/8000x/v1/runs").status_code == 404


def test_every_problem_type_is_explained_where_its_uri_points(client: TestClient) -> None:
    for kind in KINDS:
        page = client.get(f"/problems/{kind.name}")
        assert (page.status_code, f"HTTP {kind.status}" in page.text, kind.remedy in page.text) == (200, True, True)


def test_every_answer_carries_the_security_headers(client: TestClient) -> None:
    for path in ("/v1/runs", "/v1/nope", "/v1/runs?limit=0", "/healthz", "/problems/conflict"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "script-src 'self';" in headers["content-security-policy"]
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "private, no-cache"


def test_large_answers_are_compressed_and_still_tagged(client: TestClient) -> None:
    answer = client.get("/v1/runs", headers={"Accept-Encoding": "gzip"})
    assert (answer.headers["content-encoding"], answer.headers["etag"][:3]) == ("gzip", 'W/"')
    again = client.get("/v1/runs", headers={"Accept-Encoding": "gzip", "If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_a_smaller_limit_on_bodies_holds(store: Store) -> None:
    client = client_of(store, ServerSettings(body_bytes=10))
    answer = client.post("/v1/studies", content=json.dumps({"name": "longer than that"}))
    assert (answer.status_code, "at most 10 bytes" in answer.json()["detail"]) == (413, True)


@pytest.mark.parametrize(
    ("host", "name"),
    [("localhost:80", "localhost"), ("[::1]:80", "[::1]"), ("A.B.:1", "a.b"), ("", ""), ("[::1", ""), ("a:b:c", "a")],
)
def test_a_host_header_is_cut_to_its_name(host: str, name: str) -> None:
    assert host_name(host) == name


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "gpu07.cluster", ""])
def test_listening_elsewhere_without_a_token_is_refused(host: str) -> None:
    with pytest.raises(InvalidInputError, match="can be reached from other machines: set a token"):
        ServerSettings(host=host)
    assert ServerSettings(host=host, token=TOKEN).host_names is None


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.0.9", "::1", "[::1]"])
def test_listening_on_loopback_needs_no_token(host: str) -> None:
    assert ServerSettings(host=host).is_loopback


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"token": ""}, "token: expected at least 16"),
        ({"token": "secret"}, "token: expected at least 16"),
        ({"token": "with some spaces inside"}, "visible ASCII"),
        ({"port": 65536}, "port 65536"),
        ({"port": -1}, "port -1"),
        ({"root_path": "node"}, "root path 'node'"),
        ({"root_path": "/node/"}, "root path '/node/'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as refused:
        replace(ServerSettings(), **wrong)  # type: ignore[arg-type]
    assert "secret" not in str(refused.value)


SCOPE = {"type": "http", "method": "POST", "path": "/slow", "headers": [(b"content-type", b"text/plain")]}


@pytest.mark.parametrize(
    ("size", "expected"),
    [(2 * MEMORY_BYTES + 1, 2), (2 * MEMORY_BYTES, 5), (MEMORY_BYTES + 1, 5), (MEMORY_BYTES, 20)],
)
def test_no_more_large_bodies_are_held_at_once_than_the_rule_says(size: int, expected: int) -> None:
    inside, most = 0, 0

    async def receive() -> Message:
        return {"type": "http.request", "body": b"x" * size, "more_body": False}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal inside, most
        inside, most = inside + 1, max(most, inside + 1)
        await anyio.sleep(0.01)
        inside -= 1

    async def ask_all() -> None:
        rule = BodyRule("text/plain", 3 * MEMORY_BYTES, at_once=2, small_bytes=2 * MEMORY_BYTES, small_at_once=5)
        check = BodyCheck(app, 10, Spool(60 * MEMORY_BYTES), {"/slow": rule})
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(check, SCOPE, receive, None)

    anyio.run(ask_all)
    assert most == expected
