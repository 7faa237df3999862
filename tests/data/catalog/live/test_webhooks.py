"""Webhooks in the catalog: each is leased to one server at a time, in both databases."""

import time
from threading import Thread

import pytest

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.live import webhooks
from crosswind.data.catalog.live.webhooks import StoredWebhook
from crosswind.data.schema.access import OWNER, Principal, PrincipalKind
from crosswind.data.schema.answers.events import EventFilter, EventKind
from crosswind.data.schema.answers.webhooks import Delivery, WebhookState
from crosswind.data.schema.errors import ConflictError, NotFoundError
from crosswind.data.schema.part import Part
from crosswind.data.schema.run import new_ulid

ANN = Principal(PrincipalKind.PERSON, "ann", user="ann", accounts=frozenset({"chem"}))
NOW_NS = time.time_ns()
MINUTE_NS = 60_000_000_000


def add(catalog: Catalog, owner: Principal = ANN, position: int = 0) -> str:
    conditions = EventFilter(workload="w", kinds=(EventKind.RUN_ENDED,))
    with catalog.write() as session:
        whose = {"owner": owner, "token_id": None}
        made = session.webhooks.add("https://a.example/", conditions, secret="whsec_x", position=position, **whose)  # type: ignore[arg-type]
    return made.webhook_id


def claim(catalog: Catalog, now_ns: int = NOW_NS, newest: int = 5) -> StoredWebhook | None:
    with catalog.write() as session:
        return session.webhooks.claim(now_ns, newest=newest, lease_until_ns=now_ns + MINUTE_NS)


def test_a_webhook_comes_back_as_it_was_stored(catalog: Catalog) -> None:
    webhook_id = add(catalog)
    with catalog.read() as session:
        stored = session.webhooks.get(webhook_id, ANN)
    assert (stored.owner, stored.secret, stored.webhook.state) == (ANN, "whsec_x", WebhookState.ACTIVE)
    assert stored.webhook.conditions == EventFilter(workload="w", kinds=(EventKind.RUN_ENDED,))


def test_a_webhook_is_its_owners_and_administrators(catalog: Catalog) -> None:
    webhook_id = add(catalog)
    other = Principal(PrincipalKind.PERSON, "ben", user="ben")
    with catalog.read() as session:
        assert session.webhooks.get(webhook_id, OWNER).webhook.webhook_id == webhook_id
        assert session.webhooks.find(other, Part(10)) == []
        with pytest.raises(NotFoundError):
            session.webhooks.get(webhook_id, other)


def test_several_servers_that_claim_at_once_get_different_ones(catalog: Catalog) -> None:
    ids = {add(catalog) for _ in range(6)}
    claimed: list[str] = []

    def work() -> None:
        while leased := claim(catalog):
            claimed.append(leased.webhook.webhook_id)

    servers = [Thread(target=work) for _ in range(3)]
    for server in servers:
        server.start()
    for server in servers:
        server.join()
    assert sorted(claimed) == sorted(ids)


def test_what_is_not_due_is_not_claimed(catalog: Catalog) -> None:
    add(catalog, position=5)
    assert claim(catalog) is None
    assert claim(catalog, newest=6) is not None
    with catalog.read() as session:
        assert not session.webhooks.is_any_due(NOW_NS, 6)
        assert session.webhooks.is_any_due(NOW_NS + 2 * MINUTE_NS, 6)


def test_whoever_has_lost_the_lease_changes_nothing(catalog: Catalog) -> None:
    webhook_id = add(catalog)
    first = claim(catalog)
    second = claim(catalog, NOW_NS + 2 * MINUTE_NS)
    assert first is not None
    assert second is not None
    with catalog.write() as session:
        assert not session.webhooks.change(first, position=1)
        assert session.webhooks.change(second, position=2, lease_until_ns=0)
    with catalog.read() as session:
        assert session.webhooks.get(webhook_id, ANN).webhook.position == 2


def test_a_disabled_one_is_claimed_by_nobody_until_it_is_enabled(catalog: Catalog) -> None:
    webhook_id = add(catalog)
    leased = claim(catalog)
    assert leased is not None
    with catalog.write() as session:
        session.webhooks.change(leased, disabled_ns=NOW_NS, disabled_reason="it was in vain", lease_until_ns=0)
    assert claim(catalog) is None
    with catalog.write() as session:
        assert session.webhooks.get(webhook_id, ANN).webhook.disabled_reason == "it was in vain"
        assert session.webhooks.enable(webhook_id, ANN, position=4).state is WebhookState.ACTIVE
    assert claim(catalog) is not None


def test_the_newest_attempts_are_kept(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "DELIVERIES_KEPT", 3)
    webhook_id = add(catalog)
    facts = {"webhook_id": webhook_id, "kind": EventKind.RUN_ENDED, "at_ns": NOW_NS, "status": None, "error": "no"}
    for number in range(6):
        with catalog.write() as session:
            made = Delivery(delivery_id=new_ulid(), event_id=number, attempt=1, seconds=0.5, **facts)  # type: ignore[arg-type]
            session.webhooks.note(made)
        time.sleep(0.002)  # ids of one millisecond have no order
    with catalog.write() as session:
        kept = session.webhooks.deliveries(webhook_id, Part(10, descending=True))
        assert [one.event_id for one in kept] == [5, 4, 3]
        assert (
            session.webhooks.deliveries(webhook_id, Part(10, descending=True, after=(kept[1].delivery_id,))) == kept[2:]
        )
        session.webhooks.remove(webhook_id, ANN)
        assert session.webhooks.deliveries(webhook_id, Part(10, descending=True)) == []


def test_one_owner_has_so_many(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "OWN_MAX", 2)
    add(catalog)
    add(catalog)
    with pytest.raises(ConflictError, match="2 webhooks"):
        add(catalog)
    add(catalog, OWNER)
