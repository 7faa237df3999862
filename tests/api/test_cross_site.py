"""Requests that a browser sends for a page of another site."""

import pytest
from starlette.datastructures import Headers
from starlette.testclient import TestClient

from crosswind.api.app import create_app
from crosswind.api.cross_site import CrossSite, origin_of
from crosswind.api.settings import ServerSettings
from crosswind.data.store.store import Store

RELEASE = "/v1/studies/s/trials/t:release"  # a POST that needs no body
HERE = "localhost:8000"


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:3000",  # another program of this machine
        "http://localhost",
        "https://localhost:8000",
        "http://127.0.0.1:8000",
        "http://localhost:8000.evil.example",
        "http://evil.example:8000",
        "http://localhost:99999",
        "file://",
        "null",
        "",
    ],
)
def test_a_post_without_a_body_from_another_origin_is_refused(client: TestClient, origin: str) -> None:
    answer = client.post(RELEASE, headers={"Origin": origin})
    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/forbidden")


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_what_the_browser_says_is_of_another_site_is_refused(client: TestClient, site: str) -> None:
    answer = client.post(RELEASE, headers={"Sec-Fetch-Site": site, "Origin": f"http://{HERE}"})
    assert (answer.status_code, "Sec-Fetch-Site" in answer.json()["detail"]) == (403, True)


@pytest.mark.parametrize("headers", [{}, {"Origin": f"http://{HERE}"}, {"Sec-Fetch-Site": "same-origin"}])
def test_our_own_pages_and_programs_are_let_in(client: TestClient, headers: dict[str, str]) -> None:
    assert client.post(RELEASE, headers=headers).status_code == 404  # there is no such study


def test_a_page_elsewhere_may_lead_here_but_load_nothing_into_itself(client: TestClient) -> None:
    elsewhere = {"Sec-Fetch-Site": "cross-site"}
    assert client.get("/v1/stragglers", headers={**elsewhere, "Sec-Fetch-Mode": "no-cors"}).status_code == 403
    assert client.get("/v1/stragglers", headers={**elsewhere, "Sec-Fetch-Mode": "cors"}).status_code == 403
    assert client.get("/v1/runs", headers={**elsewhere, "Sec-Fetch-Mode": "navigate"}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "is_own"),
    [
        ({"Host": "portal.example", "Origin": "https://portal.example"}, True),
        ({"Host": "portal.example", "Origin": "https://portal.example:8443"}, False),
        ({"Host": "portal.example:8443", "Origin": "https://portal.example:8443"}, True),
        ({"Host": "localhost:8000", "Origin": "https://portal.example"}, True),  # it passes on the name that it uses
        ({"Host": "localhost:8000", "Origin": "https://localhost:8000"}, False),
        ({"Host": "localhost:8000", "Origin": "https://localhost:8000", "X-Forwarded-Proto": "https"}, True),
        ({"Host": "portal.example", "Origin": "https://other.example"}, False),
        ({"Host": "PORTAL.example.", "Origin": "https://Portal.Example"}, True),
    ],
)
def test_pages_behind_a_named_proxy_are_our_own(headers: dict[str, str], is_own: bool) -> None:
    check = CrossSite(ServerSettings(hosts=("Portal.example",)))
    assert (check.refusal("POST", Headers(headers)) is None) == is_own


def test_a_proxy_may_be_named_with_its_port() -> None:
    check = CrossSite(ServerSettings(hosts=("portal.example:8443",)))
    assert check.refusal("POST", Headers({"Host": HERE, "Origin": "https://portal.example:8443"})) is None
    assert check.refusal("POST", Headers({"Host": HERE, "Origin": "https://portal.example"})) is not None
    assert check.refusal("GET", Headers({"Host": "portal.example:8443"})) is None


def test_an_origin_has_scheme_name_and_port() -> None:
    assert origin_of("https://A.example") == ("https", "a.example", 443)
    assert origin_of("http://[::1]:8000") == ("http", "[::1]", 8000)
    assert [origin_of(text) for text in ("null", "", "http://", "http://a:b", "ftp://a")] == [None] * 5


def test_browsers_keep_to_tls_where_a_proxy_speaks_it(store: Store) -> None:
    client = TestClient(create_app(store), base_url="http://localhost:8000")
    over_tls = client.get("/healthz", headers={"X-Forwarded-Proto": "https"})
    assert over_tls.headers["strict-transport-security"] == "max-age=31536000"
    assert "strict-transport-security" not in client.get("/healthz").headers
