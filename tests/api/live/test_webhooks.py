"""Webhooks: signed, sent once by several servers, again after failures, and what their owner may see then."""

import base64
import hashlib
import hmac
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from ipaddress import ip_network
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.api.access.issuing import ANNA, BEN, bearer, issued, revoked, stranger
from tests.api.live.listening import store_run, until
from tests.api.live.receiving import receiving
from tests.serving import own_client

from crosswind.api.access.credentials import COOKIE
from crosswind.api.app import create_app
from crosswind.api.live import deliveries
from crosswind.api.live.deliveries import delivering
from crosswind.api.settings import ServerSettings, networks_of
from crosswind.data.schema.access import Principal, PrincipalKind, Scope, TokenUse
from crosswind.data.schema.answers.events import EventKind
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.store.store import Store

LOOPBACK = (ip_network("127.0.0.0/8"),)
TUNING = frozenset({Scope.READ, Scope.TUNE})
HOOK_ANNA = Principal(PrincipalKind.PERSON, "anna", scopes=TUNING, user="anna", accounts=frozenset({"physics"}))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(deliveries, "PAUSES_SECONDS", (0.1,))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def owner(store: Store) -> TestClient:
    return own_client(create_app(store, ServerSettings(webhook_networks=LOOPBACK)))


@pytest.fixture
def sent(store: Store) -> Iterator[None]:
    with delivering(store, LOOPBACK, lambda _: True):
        yield


def create(client: TestClient, url: str, **facts: object) -> tuple[str, str]:
    made = client.post("/v1/webhooks", json={"url": url, **facts}).json()
    return made["webhook"]["webhook_id"], made["secret"]


@pytest.mark.usefixtures("sent")
def test_a_message_is_verified_as_the_scheme_says(store: Store, owner: TestClient) -> None:
    with receiving() as receiver:
        webhook_id, secret = create(owner, receiver.url)
        store_run(store.catalog, "r1")
        assert until(lambda: len(receiver.bodies) == 1)
        [headers], [body] = receiver.headers, receiver.bodies
        assert headers["webhook-id"] == f"evt_{webhook_id}_1"
        assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        key = base64.b64decode(secret.removeprefix("whsec_"))
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        assert headers["webhook-signature"] == f"v1,{expected}"
        [said] = receiver.said
        assert (said["type"], said["data"]["run_id"]) == ("run.started", "r1")
        assert until(lambda: owner.get(f"/v1/webhooks/{webhook_id}").json()["position"] == 1)
        [kept] = owner.get(f"/v1/webhooks/{webhook_id}/deliveries").json()["deliveries"]
        assert (kept["event_id"], kept["attempt"], kept["status"], kept["error"]) == (1, 1, 204, None)
    assert secret not in owner.get("/v1/webhooks").text


def test_every_event_is_sent_once_and_in_order_by_several_servers(store: Store, owner: TestClient) -> None:
    with receiving() as receiver, ExitStack() as servers:
        create(owner, receiver.url)
        for _ in range(3):
            servers.enter_context(delivering(store, LOOPBACK, lambda _: True))
        for number in range(30):
            store_run(store.catalog, f"r{number}")
        assert until(lambda: len(receiver.bodies) >= 30)
        time.sleep(0.3)
        assert [said["data"]["run_id"] for said in receiver.said] == [f"r{number}" for number in range(30)]


@pytest.mark.usefixtures("sent")
def test_what_fails_is_sent_again_with_the_same_id_until_it_is_taken(store: Store, owner: TestClient) -> None:
    with receiving(lambda number: 500 if number < 3 else 200) as receiver:
        webhook_id, _ = create(owner, receiver.url)
        store_run(store.catalog, "r1")
        store_run(store.catalog, "r2")
        assert until(lambda: len(receiver.bodies) == 4)
        assert [said["data"]["run_id"] for said in receiver.said] == ["r1", "r1", "r1", "r2"]
        assert len({headers["webhook-id"] for headers in receiver.headers}) == 2
        assert until(lambda: owner.get(f"/v1/webhooks/{webhook_id}").json()["position"] == 2)
        kept = owner.get(f"/v1/webhooks/{webhook_id}/deliveries").json()["deliveries"]
        assert [(one["attempt"], one["status"]) for one in kept] == [(1, 200), (3, 200), (2, 500), (1, 500)]
        assert kept[-1]["error"] == "status 500, expected 200 to 299"


@pytest.mark.usefixtures("sent")
def test_after_long_failing_it_is_disabled_with_a_reason_and_can_be_enabled_again(
    store: Store, owner: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "GIVE_UP_SECONDS", 0.3)
    with receiving(lambda number: 503) as receiver:
        webhook_id, _ = create(owner, receiver.url)
        store_run(store.catalog, "r1")
        assert until(lambda: owner.get(f"/v1/webhooks/{webhook_id}").json()["state"] == "disabled")
        assert "status 503" in owner.get(f"/v1/webhooks/{webhook_id}").json()["disabled_reason"]
        count = len(receiver.bodies)
        receiver.answer = lambda _: 200
        time.sleep(0.4)
        assert len(receiver.bodies) == count
        assert owner.post(f"/v1/webhooks/{webhook_id}:enable").json()["state"] == "active"
        store_run(store.catalog, "r2")
        assert until(lambda: receiver.said[-1]["data"]["run_id"] == "r2")


@pytest.mark.usefixtures("sent")
def test_a_receiver_that_wants_nothing_more_gets_nothing_more(store: Store, owner: TestClient) -> None:
    with receiving(lambda _: 410) as receiver:
        webhook_id, _ = create(owner, receiver.url)
        store_run(store.catalog, "r1")
        assert until(lambda: owner.get(f"/v1/webhooks/{webhook_id}").json()["state"] == "disabled")
        assert len(receiver.bodies) == 1


@pytest.mark.usefixtures("sent")
def test_a_redirect_is_a_failure_and_is_not_followed(store: Store, owner: TestClient) -> None:
    with receiving(lambda number: 302 if number == 1 else 200) as receiver:
        webhook_id, _ = create(owner, receiver.url)
        store_run(store.catalog, "r1")
        assert until(lambda: owner.get(f"/v1/webhooks/{webhook_id}").json()["position"] == 1)
        kept = owner.get(f"/v1/webhooks/{webhook_id}/deliveries").json()["deliveries"]
        assert [one["status"] for one in kept] == [200, 302]


@pytest.mark.usefixtures("sent")
def test_it_gets_what_its_owner_may_see_when_it_is_sent(store: Store) -> None:
    app = create_app(store)
    with receiving() as receiver:
        made = issued(store, HOOK_ANNA)
        create(stranger(app, bearer(made.secret)), receiver.url)
        store_run(store.catalog, "bens", user="ben")
        store_run(store.catalog, "annas", user="anna")
        store_run(store.catalog, "physics", user="ben", account="physics")
        assert until(lambda: len(receiver.bodies) == 2)
        assert [said["data"]["run_id"] for said in receiver.said] == ["annas", "physics"]


@pytest.mark.usefixtures("sent")
def test_it_ends_with_the_token_that_made_it(store: Store, owner: TestClient) -> None:
    app = create_app(store)
    with receiving() as receiver:
        made = issued(store, HOOK_ANNA)
        webhook_id, _ = create(stranger(app, bearer(made.secret)), receiver.url)
        revoked(store.catalog, made)
        store_run(store.catalog, "annas", user="anna")
        assert until(lambda: owner.get(f"/v1/webhooks/{webhook_id}").json()["state"] == "disabled")
        assert owner.get(f"/v1/webhooks/{webhook_id}").json()["disabled_reason"] == "the token was revoked that made it"
        assert receiver.bodies == []


@pytest.mark.usefixtures("sent")
def test_conditions_decide_what_is_sent_and_progress_is_only_sent_where_it_is_named(
    store: Store, owner: TestClient
) -> None:
    with receiving() as receiver:
        create(owner, receiver.url, workload="v")
        store_run(store.catalog, "other")
        store_run(store.catalog, "mine", workload="v")
        assert until(lambda: len(receiver.bodies) == 1)
        assert receiver.said[0]["data"]["run_id"] == "mine"
    assert "run.progress" not in owner.get("/v1/webhooks").json()["webhooks"][0]["conditions"]["kinds"]


def test_a_test_is_sent_at_once(owner: TestClient) -> None:
    with receiving() as receiver:
        webhook_id, _ = create(owner, receiver.url)
        made = owner.post(f"/v1/webhooks/{webhook_id}:test").json()
        assert (made["kind"], made["status"], made["error"]) == ("test", 204, None)
        assert receiver.said[0]["type"] == "test"
    made = owner.post(f"/v1/webhooks/{webhook_id}:test").json()
    assert made["status"] is None
    assert made["error"]


def test_webhooks_are_their_owners(store: Store) -> None:
    app = create_app(store)
    anna = stranger(app, bearer(issued(store, HOOK_ANNA).secret))
    ben = stranger(app, bearer(issued(store, Principal(BEN.kind, "ben", scopes=TUNING, user="ben")).secret))
    webhook_id, _ = create(anna, "https://anna.example/hook")
    assert len(anna.get("/v1/webhooks").json()["webhooks"]) == 1
    assert ben.get("/v1/webhooks").json()["webhooks"] == []
    unknown = ben.get("/v1/webhooks/none").json()["detail"].replace("none", webhook_id)
    for act in ("", "/deliveries"):
        assert ben.get(f"/v1/webhooks/{webhook_id}{act}").json()["detail"] == unknown
    for act in ("delete", "enable", "test"):
        assert ben.post(f"/v1/webhooks/{webhook_id}:{act}").status_code == 404
    assert own_client(app).post(f"/v1/webhooks/{webhook_id}:delete").status_code == 200
    assert anna.get("/v1/webhooks").json()["webhooks"] == []


def test_a_user_has_so_many_webhooks_and_no_more(owner: TestClient) -> None:
    answers = [owner.post("/v1/webhooks", json={"url": "https://example.org/"}).status_code for _ in range(21)]
    assert answers == [201] * 20 + [409]
    listed, address = 0, "/v1/webhooks?limit=7"
    while address:
        page = owner.get(address).json()
        listed += len(page["webhooks"])
        address = page["next_url"]
    assert listed == 20


def test_a_browsers_session_makes_none(store: Store) -> None:
    made = issued(store, HOOK_ANNA, use=TokenUse.SESSION)
    browser = stranger(create_app(store), {"Cookie": f"{COOKIE}={made.secret}"})
    assert browser.post("/v1/webhooks", json={"url": "https://example.org/"}).status_code == 403


def test_a_token_that_may_only_read_makes_none(store: Store) -> None:
    client = stranger(create_app(store), bearer(issued(store, ANNA).secret))
    assert client.post("/v1/webhooks", json={"url": "https://example.org/"}).status_code == 403


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"url": "ftp://example.org/"},
        {"url": "https://"},
        {"url": "https://user:pass@example.org/"},
        {"url": "https://example.org/#part"},
        {"url": "https://example.org/a b"},
        {"url": "https://example.org/\r\nX: y"},
        {"url": "https://example.org:99999/"},
        {"url": "https://exämple.org/"},
        {"url": "https://example.org/" + "a" * 2000},
        {"url": "https://example.org/", "kinds": ["nonsense"]},
        {"url": "https://example.org/", "nonsense": 1},
    ],
)
def test_what_is_no_webhook_is_refused(owner: TestClient, body: dict[str, object]) -> None:
    answer = owner.post("/v1/webhooks", json=body)
    assert answer.status_code == 422
    assert answer.json()["type"] == "/problems/invalid-input"


def test_the_pauses_between_attempts_grow(monkeypatch: pytest.MonkeyPatch, store: Store, owner: TestClient) -> None:
    monkeypatch.undo()
    create(owner, "http://127.0.0.1:9/")
    store_run(store.catalog, "r1")
    deliverer = deliveries.Deliverer(store, LOOPBACK, lambda _: True)
    leased = deliverer.claim()
    assert leased is not None
    assert deliverer.claim() is None
    pauses: list[float] = []
    clock: Callable[[], int] = itertools.count(1, 10**9).__next__
    for attempts in range(8):
        now_ns = clock()
        webhook = deliveries.replace(leased.webhook, attempts=attempts, failing_since_ns=1)
        failed = deliveries.Attempt(500, "status 500")
        event = deliveries.Event(event_id=1, kind=EventKind.TEST, at_ns=1)
        values = deliveries._after(deliveries.replace(leased, webhook=webhook), event, failed, now_ns)
        pauses.append((values["next_try_ns"] - now_ns) * 1e-9)  # type: ignore[operator]
    expected = (5, 30, 120, 600, 1800, 3600, 3600, 3600)
    assert all(0.8 * one <= pause <= 1.2 * one for pause, one in zip(pauses, expected, strict=True))


def test_a_network_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="webhook network"):
        networks_of(["10.0.0.1/8"])
