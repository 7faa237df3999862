"""Webhooks in the catalog: who sends to each, until when, and what came of it."""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, delete, func, select, update

from crosswind.data.catalog import rows
from crosswind.data.catalog.keyset import part_of
from crosswind.data.catalog.live.tables import deliveries, webhooks
from crosswind.data.schema.access import Principal, PrincipalKind, Role, Scope
from crosswind.data.schema.answers.events import EventFilter, EventKind
from crosswind.data.schema.answers.webhooks import Delivery, Webhook, WebhookState
from crosswind.data.schema.errors import ConflictError, NotFoundError
from crosswind.data.schema.part import Part
from crosswind.data.schema.run import new_ulid

OWN_MAX = 20  # webhooks of one principal
DELIVERIES_KEPT = 200  # of one webhook, the newest
TABLE = webhooks


@dataclass(frozen=True)
class StoredWebhook:
    """A webhook with its secret, its owner as they were when they made it, and the token that they had."""

    webhook: Webhook
    secret: str
    owner: Principal
    token_id: str | None
    lease_until_ns: int


class Webhooks:
    """Webhooks, over one connection; leases run on the clock that the caller passes, ns UTC."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(  # noqa: PLR0913 - the parts of a webhook
        self, url: str, conditions: EventFilter, *, secret: str, owner: Principal, token_id: str | None, position: int
    ) -> Webhook:
        """Store a new webhook. Raises: ConflictError when its owner has too many."""
        rows.hold(self._connection, f"webhooks {owner.mark}")
        count = select(func.count()).where(TABLE.c.owner_mark == owner.mark)
        if int(self._connection.execute(count).scalar_one()) >= OWN_MAX:
            raise ConflictError(f"{owner} has {OWN_MAX} webhooks: delete one first")
        webhook_id = new_ulid()
        facts = {"webhook_id": webhook_id, "url": url, "secret": secret, "position": position, "token_id": token_id}
        whose = {"owner": _owner_row(owner), "owner_mark": owner.mark, "conditions": asdict(conditions)}
        begin = {"created_ns": time.time_ns(), "attempts": 0, "next_try_ns": 0, "lease_until_ns": 0}
        rows.add(self._connection, TABLE, {**facts, **whose, **begin})
        return self.get(webhook_id, owner).webhook

    def get(self, webhook_id: str, asker: Principal) -> StoredWebhook:
        """Return a webhook of one's own; an administrator's: any. Raises: NotFoundError."""
        row = rows.fetch(self._connection, TABLE, webhook_id=webhook_id)
        if row is None or not (asker.allows(Scope.ADMIN) or row["owner_mark"] == asker.mark):
            raise NotFoundError(f"webhook {webhook_id!r:.80} is not in the catalog")
        return _stored(row)

    def find(self, asker: Principal, part: Part) -> list[Webhook]:
        """Return a part of the webhooks by id, oldest first: one's own, of an administrator all."""
        query = part_of(select(TABLE), part, TABLE.c.webhook_id)
        if not asker.allows(Scope.ADMIN):
            query = query.where(TABLE.c.owner_mark == asker.mark)
        return [stored.webhook for stored in self._stored(query)]

    def remove(self, webhook_id: str, asker: Principal) -> None:
        """Remove a webhook and what is kept of it. Raises: as `get`."""
        self.get(webhook_id, asker)
        self._connection.execute(delete(deliveries).where(deliveries.c.webhook_id == webhook_id))
        self._connection.execute(delete(TABLE).where(TABLE.c.webhook_id == webhook_id))

    def enable(self, webhook_id: str, asker: Principal, *, position: int) -> Webhook:
        """Send from this position on, also after it was disabled. Raises: as `get`."""
        self.get(webhook_id, asker)
        anew = {"attempts": 0, "failing_since_ns": None, "next_try_ns": 0, "lease_until_ns": 0, "position": position}
        rows.change(self._connection, TABLE, {"webhook_id": webhook_id}, **anew, disabled_ns=None, disabled_reason=None)
        return self.get(webhook_id, asker).webhook

    def is_any_due(self, now_ns: int, newest: int) -> bool:
        """Return whether there are events to send by a webhook that nobody sends for."""
        return (
            self._connection.execute(select(TABLE.c.webhook_id).where(_is_due(now_ns, newest)).limit(1)).first()
            is not None
        )

    def claim(self, now_ns: int, *, newest: int, lease_until_ns: int) -> StoredWebhook | None:
        """Lease the webhook that is due the longest; None where none is."""
        # SQLite has no row locks: there a session that writes has the whole database to itself.
        query = select(TABLE).where(_is_due(now_ns, newest)).order_by(TABLE.c.next_try_ns, TABLE.c.lease_until_ns)
        due = self._stored(query.limit(1).with_for_update(skip_locked=True))
        if not due:
            return None
        webhook_id = due[0].webhook.webhook_id
        rows.change(self._connection, TABLE, {"webhook_id": webhook_id}, lease_until_ns=lease_until_ns)
        return _stored(rows.fetch(self._connection, TABLE, webhook_id=webhook_id) or {})

    def change(self, leased: StoredWebhook, **values: object) -> bool:
        """Set columns of a webhook that is leased; return whether it still is, and neither removed nor taken over."""
        still = and_(TABLE.c.webhook_id == leased.webhook.webhook_id, TABLE.c.lease_until_ns == leased.lease_until_ns)
        statement = update(TABLE).where(still).values(**values).execution_options(preserve_rowcount=True)
        return self._connection.execute(statement).rowcount == 1

    def note(self, delivery: Delivery) -> None:
        """Keep what came of an attempt, and forget the oldest."""
        row = {name: value for name, value in asdict(delivery).items() if name != "at"}
        rows.add(self._connection, deliveries, row)
        of_webhook = select(deliveries.c.delivery_id).where(deliveries.c.webhook_id == delivery.webhook_id)
        newest = of_webhook.order_by(deliveries.c.delivery_id.desc()).offset(DELIVERIES_KEPT).limit(1)
        if last := self._connection.execute(newest).scalar():
            old = and_(deliveries.c.webhook_id == delivery.webhook_id, deliveries.c.delivery_id <= last)
            self._connection.execute(delete(deliveries).where(old))

    def deliveries(self, webhook_id: str, part: Part) -> list[Delivery]:
        """Return a part of the attempts, in the order of their ids."""
        query = part_of(select(deliveries).where(deliveries.c.webhook_id == webhook_id), part, deliveries.c.delivery_id)
        attempts = self._connection.execute(query).mappings()
        return [Delivery(**{**row, "kind": EventKind(row["kind"])}) for row in attempts]

    def _stored(self, query: Select[Any]) -> list[StoredWebhook]:
        return [_stored(dict(row)) for row in self._connection.execute(query).mappings()]


def _is_due(now_ns: int, newest: int) -> ColumnElement[bool]:
    is_free = and_(TABLE.c.disabled_ns.is_(None), TABLE.c.next_try_ns <= now_ns, TABLE.c.lease_until_ns < now_ns)
    return and_(is_free, TABLE.c.position != newest)


def _owner_row(owner: Principal) -> dict[str, Any]:
    return {**asdict(owner), "scopes": sorted(owner.scopes), "accounts": sorted(owner.accounts)}


def _stored(row: Mapping[str, Any]) -> StoredWebhook:
    owner = row["owner"]
    sets = {"scopes": frozenset(map(Scope, owner["scopes"])), "accounts": frozenset(owner["accounts"])}
    principal = Principal(**{**owner, **sets, "kind": PrincipalKind(owner["kind"]), "role": Role(owner["role"])})
    is_failing, is_disabled = row["failing_since_ns"] is not None, row["disabled_ns"] is not None
    state = WebhookState.DISABLED if is_disabled else WebhookState.FAILING if is_failing else WebhookState.ACTIVE
    kinds = row["conditions"]["kinds"]
    conditions = {**row["conditions"], "kinds": None if kinds is None else tuple(map(EventKind, kinds))}
    names = ("webhook_id", "url", "position", "attempts", "created_ns", "failing_since_ns", "disabled_ns")
    webhook = Webhook(
        **{name: row[name] for name in names},
        conditions=EventFilter(**conditions),
        owner=str(principal),
        state=state,
        next_try_ns=row["next_try_ns"] or None,
        disabled_reason=row["disabled_reason"],
    )
    return StoredWebhook(webhook, row["secret"], principal, row["token_id"], row["lease_until_ns"])
