"""Login at a provider that is right, and at one that is wrong in one way at a time."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from fastapi import FastAPI
from joserfc.jwk import RSAKey
from starlette.testclient import TestClient
from tests.api.access.issuing import ANNA, issued, stranger
from tests.api.access.oidc.attacker import (
    CLIENT,
    SECRET,
    Provider,
    provider_at_loopback,
    signed_by_another,
    signed_by_public_key,
    unsigned,
)

from crosswind.api.access.attempts import FAILURES_MAX
from crosswind.api.access.credentials import COOKIE
from crosswind.api.access.oidc import pending
from crosswind.api.app import create_app
from crosswind.api.oidc_settings import OidcSettings
from crosswind.api.settings import ServerSettings
from crosswind.cli.main import main
from crosswind.data.schema.access import Principal, PrincipalKind, Role, Scope
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.login import login_name
from crosswind.data.schema.part import Part
from crosswind.data.store.store import Store

HTML = {"Accept": "text/html"}
SERVER = "http://localhost:8000"
ROLES = {"helpdesk": Role.SUPPORT, "operators": Role.ADMIN}


@pytest.fixture(scope="module")
def key() -> RSAKey:
    return RSAKey.generate_key(2048, parameters={"kid": "k1"})


@pytest.fixture
def provider(key: RSAKey) -> Iterator[Provider]:
    with provider_at_loopback(key) as answering:
        yield answering


@pytest.fixture(autouse=True)
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    seconds: list[float] = []

    async def nap(wanted: float) -> None:
        seconds.append(wanted)

    monkeypatch.setattr("crosswind.api.routes.oidc.sleep", nap)
    return seconds


def settings_of(provider: Provider, **changes: Any) -> OidcSettings:
    facts: dict[str, Any] = {"client_secret": SECRET, "roles": ROLES, "label": "the university", "server_url": SERVER}
    return OidcSettings(provider.url, CLIENT, **(facts | changes))


def app_of(store: Store, provider: Provider, **changes: Any) -> FastAPI:
    return create_app(store, ServerSettings(oidc=settings_of(provider, **changes)))


@pytest.fixture
def app(store: Store, provider: Provider) -> FastAPI:
    return app_of(store, provider)


def begun(browser: TestClient, provider: Provider, wanted: str = "/models") -> Mapping[str, str]:
    """Return what the provider sends the browser back with."""
    led = browser.get("/login/oidc", params={"next": wanted})
    assert (led.status_code, led.headers["location"].startswith(f"{provider.url}/authorize?")) == (303, True)
    return provider.authorize(led.headers["location"])


def logged_in(app: FastAPI, provider: Provider) -> TestClient:
    browser = stranger(app, HTML, url=SERVER)
    done = browser.get("/login/oidc/callback", params=begun(browser, provider))
    assert (done.status_code, COOKIE in browser.cookies) == (200, True), done.text
    return browser


def failure(browser: TestClient, brought: Mapping[str, str]) -> str:
    """Return why a login fails, which must leave no session."""
    page = browser.get("/login/oidc/callback", params=brought)
    assert (page.status_code, COOKIE in browser.cookies) == (401, False), page.text
    return page.text.partition('role="alert"')[2].partition("</p>")[0]


def audited(store: Store) -> list[tuple[str, str, object]]:
    with store.catalog.read() as session:
        entries = session.audit.find({}, Part(100, descending=True))
    return [(entry.who, entry.act, entry.details.get("by")) for entry in entries]


def test_a_person_logs_in_at_the_provider_and_is_led_on(app: FastAPI, provider: Provider, store: Store) -> None:
    browser = stranger(app, HTML, url=SERVER)
    page = browser.get("/login?next=/models").text
    assert "Log in at the university" in page
    assert f'href="{SERVER}/login/oidc?next=%2Fmodels"' in page
    done = browser.get("/login/oidc/callback", params=begun(browser, provider))
    assert 'http-equiv="refresh" content="0; url=../../models"' in done.text  # a redirect would not bring the cookie
    assert browser.get("/models").status_code == 200
    assert "You are anna." in browser.get("/login").text
    assert audited(store) == [("person anna", "log in", f"oidc {provider.url}")]
    assert pending.COOKIE not in browser.cookies


def test_groups_give_role_scopes_and_accounts(store: Store, provider: Provider) -> None:
    app = app_of(store, provider, accounts_claim="groups")
    expected = {
        "physics": (Role.USER, {Scope.READ, Scope.TUNE}),
        "helpdesk": (Role.SUPPORT, {Scope.READ, Scope.TUNE}),
        "operators": (Role.ADMIN, set(Scope)),
    }
    for group, (role, scopes) in expected.items():
        provider.claims = {"preferred_username": f"of-{group}", "groups": [group, "hpc"]}
        logged_in(app, provider)
        with store.catalog.read() as session:
            [*_, token] = session.tokens.find()
        somebody = token.principal
        assert (somebody.role, somebody.scopes, somebody.user) == (role, scopes, f"of-{group}")
        assert somebody.accounts == {group, "hpc"}


def test_logging_out_ends_the_session_and_shows_the_way_out_of_the_provider(app: FastAPI, provider: Provider) -> None:
    provider.metadata = {"end_session_endpoint": f"{provider.url}/end"}
    browser = logged_in(app, provider)
    cookie = {"Cookie": f"{COOKIE}={browser.cookies[COOKIE]}"}
    left = browser.post("/logout")
    back = "client_id=crosswind&amp;post_logout_redirect_uri=http%3A%2F%2Flocalhost%3A8000%2Flogin"
    assert f'content="0; url={provider.url}/end?{back}"' in left.text
    assert stranger(app, cookie, url=SERVER).get("/v1/runs").status_code == 401


def test_where_the_provider_has_no_logout_ours_says_that_it_may_know_the_browser(
    app: FastAPI, provider: Provider
) -> None:
    left = logged_in(app, provider).post("/logout")
    assert ("Logged out" in left.text, "refresh" in left.text, left.status_code) == (True, False, 200)


def test_claims_beyond_the_id_token_are_asked_for(app: FastAPI, provider: Provider) -> None:
    provider.claims, provider.user_facts = {}, {"sub": "s1", "preferred_username": "anna", "groups": ["helpdesk"]}
    assert "You are anna." in logged_in(app, provider).get("/login").text
    provider.user_facts = {"sub": "s2", "preferred_username": "ben"}
    browser = stranger(app, HTML, url=SERVER)
    assert "another person" in failure(browser, begun(browser, provider))


def test_a_changed_key_is_looked_for(app: FastAPI, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswind.api.access.oidc.provider.KEYS_PAUSE_SECONDS", 0.0)
    logged_in(app, provider)
    provider.key = RSAKey.generate_key(2048, parameters={"kid": "k2"})
    logged_in(app, provider)
    assert provider.asked.count("/keys") == 2
    assert provider.asked.count("/.well-known/openid-configuration") == 1


NOW = int(time.time())
WRONG_CLAIMS: Mapping[str, dict[str, Any]] = {
    "another issuer": {"iss": "https://evil.example"},
    "another client's token": {"aud": "another"},
    "one audience among others, for another": {"aud": [CLIENT, "another"], "azp": "another"},
    "no audience": {"aud": None},
    "expired": {"iat": NOW - 7200, "exp": NOW - 3600},
    "no expiry": {"exp": None},
    "not yet": {"nbf": NOW + 3600},
    "another login's nonce": {"nonce": "another"},
    "no nonce": {"nonce": None},
    "no subject": {"sub": None},
    "another access token": {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
}


@pytest.mark.parametrize("name", WRONG_CLAIMS)
def test_a_token_with_wrong_claims_logs_nobody_in(app: FastAPI, provider: Provider, name: str) -> None:
    provider.claims |= WRONG_CLAIMS[name]
    browser = stranger(app, HTML, url=SERVER)
    assert "ID token that does not hold" in failure(browser, begun(browser, provider))


@pytest.mark.parametrize("sign", [unsigned, signed_by_public_key, signed_by_another])
def test_a_token_without_the_providers_signature_logs_nobody_in(
    app: FastAPI, provider: Provider, sign: Callable[[Provider, dict[str, Any]], str]
) -> None:
    provider.sign = sign
    browser = stranger(app, HTML, url=SERVER)
    assert "ID token that does not hold" in failure(browser, begun(browser, provider))


def test_an_answer_belongs_to_the_browser_that_began_the_login(app: FastAPI, provider: Provider) -> None:
    anna, mallory = stranger(app, HTML, url=SERVER), stranger(app, HTML, url=SERVER)
    ours, theirs = begun(anna, provider), begun(mallory, provider)
    assert "not begun in this browser" in failure(anna, theirs)  # who opens a stranger's link is not logged in as them
    assert "not begun in this browser" in failure(stranger(app, HTML, url=SERVER), ours)
    assert "not begun in this browser" in failure(stranger(app, HTML, url=SERVER), {})


def test_a_code_counts_once_and_for_its_own_login_alone(app: FastAPI, provider: Provider) -> None:
    browser = stranger(app, HTML, url=SERVER)
    brought = begun(browser, provider)
    cookie = {"Cookie": f"{pending.COOKIE}={browser.cookies[pending.COOKIE]}"}
    assert browser.get("/login/oidc/callback", params=brought).status_code == 200
    assert "not begun in this browser" in failure(stranger(app, HTML, url=SERVER), brought)
    assert "invalid_grant" in failure(stranger(app, HTML | cookie, url=SERVER), brought)
    other, victim = stranger(app, HTML, url=SERVER), stranger(app, HTML, url=SERVER)
    stolen = begun(victim, provider)["code"]
    assert "invalid_grant" in failure(other, {**begun(other, provider), "code": stolen})  # PKCE


def test_a_login_has_ten_minutes(app: FastAPI, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = stranger(app, HTML, url=SERVER)
    brought = begun(browser, provider)
    monkeypatch.setattr(pending, "SECONDS", -1)
    assert "too long ago" in failure(browser, brought)


def test_another_providers_answer_is_refused(app: FastAPI, provider: Provider) -> None:
    browser = stranger(app, HTML, url=SERVER)
    assert "another provider" in failure(browser, {**begun(browser, provider), "iss": "https://evil.example"})


def test_who_refuses_at_the_provider_reads_so(app: FastAPI, provider: Provider) -> None:
    browser = stranger(app, HTML, url=SERVER)
    brought = {**begun(browser, provider), "error": "access_denied"}
    assert "refused the login: &#39;access_denied&#39;" in failure(browser, brought)


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({"preferred_username": None}, "the claim preferred_username is not there"),
        ({"preferred_username": 7}, "the claim preferred_username is not there"),
        ({"preferred_username": "anna b"}, "claim preferred_username is no login name"),
        ({"preferred_username": "anna\n"}, "claim preferred_username is no login name"),
        ({"groups": ["guests"]}, "no group of yours that is let in here"),
        ({"groups": None}, "no group of yours that is let in here"),
        ({"preferred_username": login_name()}, "that of who runs this server"),
        ({"preferred_username": "root"}, "that of who runs this server"),
    ],
)
def test_who_is_nobody_here_is_not_let_in(
    store: Store, provider: Provider, claims: dict[str, Any], expected: str
) -> None:
    provider.claims |= claims
    browser = stranger(app_of(store, provider, allowed_groups=("physics",)), HTML, url=SERVER)
    assert expected in failure(browser, begun(browser, provider))


def test_a_name_of_a_local_administrator_gets_none_of_their_rights(
    app: FastAPI, provider: Provider, store: Store
) -> None:
    boss = Principal(PrincipalKind.PERSON, "boss", Role.ADMIN, frozenset(Scope), user="boss")
    issued(store, boss)
    provider.claims |= {"preferred_username": "boss"}
    browser = stranger(app, HTML, url=SERVER)
    assert "that of somebody with more rights" in failure(browser, begun(browser, provider))
    provider.claims |= {"groups": ["operators"]}  # the provider says that they are an administrator
    assert logged_in(app, provider).get("/metrics").status_code == 200


def test_an_address_that_nobody_has_verified_is_no_name(store: Store, provider: Provider) -> None:
    app = app_of(store, provider, user_claim="email")
    provider.claims |= {"email": "boss@example.org", "email_verified": False}
    browser = stranger(app, HTML, url=SERVER)
    assert "has not verified the address" in failure(browser, begun(browser, provider))


def test_a_provider_that_is_away_leaves_the_local_login_and_is_asked_again(
    app: FastAPI, provider: Provider, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    browser = stranger(app, HTML, url=SERVER)
    provider.status = 503
    with caplog.at_level(logging.WARNING, "crosswind.access"):
        page = [browser.get("/login/oidc?next=/models") for _ in range(3)][-1]
    assert len(caplog.records) == 1
    assert (page.status_code, page.headers["retry-after"]) == (503, "5")
    assert "The university answers with status 503." in page.text
    assert 'name="token"' in page.text
    assert browser.post("/login", data={"token": issued(store, ANNA).secret}).status_code == 303
    provider.status = 200
    logged_in(app, provider)
    brought, provider.status = begun(other := stranger(app, HTML, url=SERVER), provider), 500
    assert other.get("/login/oidc/callback", params=brought).status_code == 503


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"issuer": "https://evil.example"}, "says that it is"),
        ({"token_endpoint": "http://evil.example/token"}, "expected https"),
        ({"jwks_uri": None}, "expected https"),
    ],
)
def test_metadata_that_lead_elsewhere_are_refused(
    app: FastAPI, provider: Provider, metadata: dict[str, Any], expected: str
) -> None:
    provider.metadata = metadata
    page = stranger(app, HTML, url=SERVER).get("/login/oidc")
    assert (page.status_code, expected in page.text) == (503, True)


def test_failed_logins_are_slowed_and_refused(app: FastAPI, naps: list[float]) -> None:
    browser = stranger(app, HTML, url=SERVER)
    answers = [browser.get("/login/oidc/callback").status_code for _ in range(FAILURES_MAX + 1)]
    assert (answers, len(naps)) == ([401] * FAILURES_MAX + [429], FAILURES_MAX)


def test_behind_a_prefix_all_ways_and_cookies_are_below_it(store: Store, provider: Provider) -> None:
    prefix = "/node/n7/8000"
    settings = settings_of(provider, server_url=f"https://portal.example{prefix}")
    app = create_app(store, ServerSettings(oidc=settings, root_path=prefix, hosts=("portal.example",)))
    browser = stranger(app, HTML, url="https://portal.example")
    led = browser.get(f"{prefix}/login/oidc?next=/models")
    cookie = led.headers["set-cookie"]
    assert (f"Path={prefix}/login/oidc" in cookie, "Secure" in cookie, "HttpOnly" in cookie) == (True, True, True)
    assert "samesite=lax" in cookie.lower()
    assert parse_qs(urlsplit(led.headers["location"]).query)["redirect_uri"] == [
        f"https://portal.example{prefix}/login/oidc/callback"
    ]
    done = browser.get(f"{prefix}/login/oidc/callback", params=provider.authorize(led.headers["location"]))
    assert "url=../../models" in done.text
    assert "Secure" in done.headers["set-cookie"]
    plain = stranger(app, HTML, url="http://portal.example").get(f"{prefix}/login/oidc")
    assert "Secure" in plain.headers["set-cookie"]  # also where the proxy does not say that it speaks TLS
    assert browser.get(f"{prefix}/models").status_code == 200
    with pytest.raises(InvalidInputError, match="expected it to end with /node/n7/8000"):
        ServerSettings(oidc=settings_of(provider), root_path=prefix)


def test_without_a_provider_there_is_no_button_and_no_way(store: Store) -> None:
    browser = stranger(create_app(store), HTML)
    assert "/login/oidc" not in browser.get("/login").text
    assert browser.get("/login/oidc").status_code == 404
    assert browser.get("/login/oidc/callback?code=a&state=b").status_code == 404


RIGHT = f'issuer = "https://a.example"\nclient_id = "c"\nserver_url = "{SERVER}"\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("issuer = 1", "client_id: expected a text"),
        (RIGHT.replace("https://a", "http://a"), "issuer 'http://a.example': expected https"),
        (f"{RIGHT}color = 'red'", "'color' is no setting"),
        (f"{RIGHT}client_secret = 'x'", "'client_secret' is no setting"),
        (f"{RIGHT}scopes = ['profile']", "expected `openid`"),
        (f"{RIGHT}allowed_groups = 'hpc'", "expected a list of texts"),
        (f"{RIGHT}[roles]\nhpc = 'user'", "roles.hpc: 'user', expected support or admin"),
        (f"{RIGHT}client_secret_file = '/nowhere/x'", "/nowhere/x"),
        ("issuer", "oidc.toml"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "oidc.toml"
    path.write_text(text)
    with pytest.raises(InvalidInputError) as error:
        OidcSettings.load(path, {})
    assert expected in str(error.value)


def test_the_secret_comes_from_the_environment_or_a_file_and_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from-the-file\n")
    path = tmp_path / "oidc.toml"
    path.write_text(f"{RIGHT}client_secret_file = '{tmp_path}/secret'\n[roles]\nops = 'admin'")
    read = OidcSettings.load(path, {})
    assert (read.client_secret, read.roles, read.shown) == ("from-the-file", {"ops": Role.ADMIN}, "a.example")
    assert OidcSettings.load(path, {"CROSSWIND_OIDC_SECRET": "s3"}).client_secret == "s3"
    assert "from-the-file" not in repr(read)


def test_a_check_asks_the_provider(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    path = tmp_path / "oidc.toml"
    path.write_text(RIGHT.replace("https://a.example", provider.url))
    words = ["serve", "--check", "--port", "0", "--oidc", str(path)]
    assert main(words) == 0
    provider.status = 503
    assert main(words) == 75
    assert "127.0.0.1 answers with status 503" in capsys.readouterr().err
