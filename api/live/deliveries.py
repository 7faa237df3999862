"""Deliveries: events on their way to webhooks, each by one of the servers of a catalog, again and again until taken."""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

import msgspec

from crosswind.api.live.sending import Attempt, Network, Receiver, send
from crosswind.api.live.signature import signed_headers
from crosswind.api.thread_beside import Ending, WarnOnce, thread_beside
from crosswind.data.catalog.database import NO_ANSWER
from crosswind.data.catalog.live.webhooks import StoredWebhook
from crosswind.data.schema.access import Principal
from crosswind.data.schema.answers.events import Event, EventPart
from crosswind.data.schema.answers.webhooks import Delivery
from crosswind.data.schema.errors import NotFoundError, ProjectError
from crosswind.data.schema.run import new_ulid
from crosswind.data.store.store import Store

LOOK_SECONDS = 1.0  # between two looks for what is to be sent
END_SECONDS = 3.0
AT_ONCE = 8  # webhooks
PART = 50  # events of one webhook, after which others have their turn
LEASE_NS = 60 * 1_000_000_000  # of a webhook: another server takes over after that
WORK_SECONDS = 30.0  # of a lease, after which no further attempt begins
PAUSES_SECONDS = (5, 30, 120, 600, 1800, 3600)  # before the next attempt; the last one again and again
GIVE_UP_SECONDS = 86_400.0  # of attempts in vain, after which a webhook is disabled
GONE = 410
SECOND_NS = 1_000_000_000
log = logging.getLogger("crosswind.webhooks")
Holds = Callable[[Principal], bool]


def delivering(store: Store, networks: Sequence[Network], holds: Holds) -> AbstractContextManager[Ending]:
    """Send events to webhooks within the context; at its end what is not sent is left to the next server.

    `networks` may be sent to besides public addresses; `holds` says whether a principal without a token still counts.
    """
    deliverer = Deliverer(store, networks, holds)
    return thread_beside(lambda ending: asyncio.run(deliverer.work(ending)), "webhooks", end_seconds=END_SECONDS)


class Deliverer:
    """Sends what is due, of several webhooks at once, of one webhook in order."""

    def __init__(self, store: Store, networks: Sequence[Network], holds: Holds) -> None:
        self._store = store.whole
        self._networks = networks
        self._holds = holds
        self._warn = WarnOnce(log)

    async def work(self, ending: Ending) -> None:
        """Send until it is to end."""
        under_way: set[asyncio.Task[None]] = set()
        while not ending.is_set():
            try:
                while len(under_way) < AT_ONCE and (leased := self.claim()):
                    under_way.add(asyncio.create_task(self.send_some(leased, ending)))
            except (ProjectError, OSError, *NO_ANSWER) as error:
                self._warn(error)
            except Exception:
                log.exception("looking for webhooks failed")
            if not under_way:
                await asyncio.sleep(LOOK_SECONDS)
                continue
            _, under_way = await asyncio.wait(under_way, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        for task in under_way:
            task.cancel()

    def claim(self) -> StoredWebhook | None:
        """Lease a webhook that there is something for; None where there is none."""
        now_ns = self._store.catalog.clock()
        with self._store.catalog.read() as session:
            newest = session.events.newest()
            if not session.webhooks.is_any_due(now_ns, newest):
                return None
        with self._store.catalog.write() as session:
            return session.webhooks.claim(now_ns, newest=newest, lease_until_ns=now_ns + LEASE_NS)

    async def send_some(self, leased: StoredWebhook, ending: Ending) -> None:
        """Send what is due to one webhook."""
        try:
            await self._send_some(leased, ending)
        except (ProjectError, OSError, *NO_ANSWER) as error:
            self._warn(error)
        except Exception:
            log.exception("webhook %s failed", leased.webhook.webhook_id)

    async def _send_some(self, leased: StoredWebhook, ending: Ending) -> None:
        owner = self._owner(leased)
        if isinstance(owner, str):
            self._disable(leased, owner)
            return
        part, end = self._part(leased, owner), time.monotonic() + WORK_SECONDS
        for event in part.events:
            if ending.is_set() or time.monotonic() > end:
                self._change(leased, lease_until_ns=0)
                return
            attempt = await send_event(leased, event, self._networks)
            if not self._note(leased, event, attempt):
                return
            leased = replace(leased, webhook=replace(leased.webhook, attempts=0, failing_since_ns=None))
        self._change(leased, position=part.position, lease_until_ns=0)

    def _owner(self, leased: StoredWebhook) -> Principal | str:
        """Return the owner with the rights of now, or why there are none."""
        if leased.token_id is None:
            return leased.owner if self._holds(leased.owner) else "its owner is not known here any more"
        try:
            with self._store.catalog.read() as session:
                token = session.tokens.get(leased.token_id)
        except NotFoundError:
            return "the token that made it is not there any more"
        if refusal := token.refusal(self._store.catalog.clock()):
            return f"{refusal} that made it"
        return token.principal

    def _part(self, leased: StoredWebhook, owner: Principal) -> EventPart:
        webhook = leased.webhook
        with self._store.seen_by(owner.row_rule).catalog.read() as session:
            return session.events.after(webhook.position, webhook.conditions, limit=PART)

    def _note(self, leased: StoredWebhook, event: Event, attempt: Attempt) -> bool:
        """Keep what came of an attempt; return whether the next event may be sent."""
        with self._store.catalog.write() as session:
            is_held = session.webhooks.change(leased, **_after(leased, event, attempt, self._store.catalog.clock()))
            if is_held:
                session.webhooks.note(delivery(leased, event, attempt))
        return is_held and attempt.is_delivered

    def _disable(self, leased: StoredWebhook, reason: str) -> None:
        self._change(leased, disabled_ns=self._store.catalog.clock(), disabled_reason=reason, lease_until_ns=0)

    def _change(self, leased: StoredWebhook, **values: object) -> None:
        with self._store.catalog.write() as session:
            session.webhooks.change(leased, **values)


def _after(leased: StoredWebhook, event: Event, attempt: Attempt, now_ns: int) -> dict[str, object]:
    """Return what an attempt changes of a webhook: its position, or when to try again, or that nobody does."""
    if attempt.is_delivered:
        return {"position": event.event_id, "attempts": 0, "failing_since_ns": None, "next_try_ns": 0}
    attempts, since_ns = leased.webhook.attempts, leased.webhook.failing_since_ns or now_ns
    pause = PAUSES_SECONDS[min(attempts, len(PAUSES_SECONDS) - 1)] * random.uniform(0.8, 1.2)  # noqa: S311 - spreads
    values: dict[str, object] = {"attempts": attempts + 1, "failing_since_ns": since_ns, "lease_until_ns": 0}
    values["next_try_ns"] = now_ns + round(pause * SECOND_NS)
    if attempt.status == GONE:
        return {**values, "disabled_ns": now_ns, "disabled_reason": "the receiver answered 410: it wants nothing more"}
    if now_ns - since_ns > GIVE_UP_SECONDS * SECOND_NS:
        reason = f"{attempts + 1} attempts in {GIVE_UP_SECONDS / 3600:g} h failed, the last one: {attempt.error}"
        return {**values, "disabled_ns": now_ns, "disabled_reason": reason}
    return values


def delivery(leased: StoredWebhook, event: Event, attempt: Attempt) -> Delivery:
    """Return what is kept of an attempt."""
    return Delivery(
        delivery_id=new_ulid(),
        webhook_id=leased.webhook.webhook_id,
        event_id=event.event_id,
        kind=event.kind,
        at_ns=time.time_ns(),
        attempt=leased.webhook.attempts + 1,
        status=attempt.status,
        error=attempt.error,
        seconds=attempt.seconds,
    )


async def send_event(leased: StoredWebhook, event: Event, networks: Sequence[Network]) -> Attempt:
    """Send one event, signed; its message id is the same at every attempt."""
    body = msgspec.json.encode({"type": event.kind, "timestamp": event.at, "data": event})
    message_id = f"evt_{leased.webhook.webhook_id}_{event.event_id}"
    fields = signed_headers(leased.secret, message_id, int(time.time()), body)
    return await send(Receiver.of(leased.webhook.url), body, fields, networks)
