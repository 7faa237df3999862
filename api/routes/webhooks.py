"""Webhooks: addresses that the server sends events to."""

import time
from dataclasses import replace
from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field

from crosswind.api.access.caller import Caller
from crosswind.api.dependencies import CallerOf, StoreOf
from crosswind.api.live.deliveries import delivery, send_event
from crosswind.api.live.sending import Receiver
from crosswind.api.live.signature import new_secret
from crosswind.api.paging import ListQuery, Page
from crosswind.api.routes.events import kinds_of
from crosswind.api.settings import ServerSettings
from crosswind.api.tables.listing import Listing
from crosswind.api.wire import Id, Name, RequestBody, refuse_unknown_query
from crosswind.data.catalog.catalog import Session
from crosswind.data.catalog.live.webhooks import StoredWebhook
from crosswind.data.schema.access import TokenUse
from crosswind.data.schema.answers.events import Event, EventFilter, EventKind
from crosswind.data.schema.answers.webhooks import CreatedWebhook, Delivery, Webhook
from crosswind.data.schema.errors import ForbiddenError
from crosswind.data.store.store import Store

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], dependencies=[Depends(refuse_unknown_query)])
USUAL = tuple(kind for kind in EventKind if kind not in (EventKind.RUN_PROGRESS, EventKind.RESET, EventKind.TEST))


class WebhookRequest(RequestBody):
    """The address to send events to, and which."""

    url: Annotated[str, Field(max_length=2000, description="https://HOST[:PORT]/PATH")]
    kinds: Annotated[list[Name] | None, Field(max_length=20, description="null: all but run.progress")] = None
    run_id: Name | None = None
    workload: Annotated[Name | None, Field(description="of runs")] = None
    system: Name | None = None
    study_id: Name | None = None

    @property
    def conditions(self) -> EventFilter:
        """The conditions on events. Raises: InvalidInputError."""
        kinds = USUAL if self.kinds is None else kinds_of(self.kinds)
        of = {"run_id": self.run_id, "workload": self.workload, "system": self.system, "study_id": self.study_id}
        return EventFilter(**of, kinds=kinds)


class WebhookPage(Page):
    """Part of the list of webhooks, oldest first."""

    webhooks: list[Webhook]


class DeliveryPage(Page):
    """Part of the attempts at a webhook, newest first; the newest 200 are kept."""

    deliveries: list[Delivery]


@router.post("", status_code=201)
def create_webhook(body: WebhookRequest, response: Response, store: StoreOf, caller: CallerOf) -> CreatedWebhook:
    """Create a webhook, which gets what is stored from now on; the answer holds its secret, this once."""
    Receiver.of(body.url)
    secret, conditions = new_secret(), body.conditions
    with store.catalog.write() as session:
        _check_lasts(session, caller)
        position, owner = session.events.newest(), caller.principal
        webhook = session.webhooks.add(
            body.url, conditions, secret=secret, owner=owner, token_id=caller.token_id, position=position
        )
        session.audit.add(str(caller.principal), "create webhook", webhook.webhook_id, url=body.url[:255])
    response.headers["Cache-Control"] = "no-store"
    return CreatedWebhook(secret=secret, webhook=webhook)


WEBHOOKS = Listing(WebhookPage, "webhooks", ("webhook_id",), ("webhook_id",))
DELIVERIES = Listing(DeliveryPage, "deliveries", ("-delivery_id",), ("delivery_id",))


@router.get("", **WEBHOOKS.route)
def list_webhooks(query: Annotated[ListQuery, Query()], request: Request, store: StoreOf, caller: CallerOf) -> Response:
    """Return webhooks: of an administrator all, of everybody else their own."""
    asked = WEBHOOKS.asked(query, request)
    with store.catalog.read() as session:
        return asked.answer(session.webhooks.find(caller.principal, asked.part))


@router.get("/{webhook_id}")
def get_webhook(webhook_id: Id, store: StoreOf, caller: CallerOf) -> Webhook:
    """Return one webhook, and why it is disabled if it is."""
    with store.catalog.read() as session:
        return session.webhooks.get(webhook_id, caller.principal).webhook


@router.get("/{webhook_id}/deliveries", **DELIVERIES.route)
def list_webhook_deliveries(
    webhook_id: Id, query: Annotated[ListQuery, Query()], request: Request, *, store: StoreOf, caller: CallerOf
) -> Response:
    """Return what came of attempts to send to a webhook."""
    asked = DELIVERIES.asked(query, request)
    with store.catalog.read() as session:
        session.webhooks.get(webhook_id, caller.principal)
        return asked.answer(session.webhooks.deliveries(webhook_id, asked.part))


@router.post("/{webhook_id}:delete")
def delete_webhook(webhook_id: Id, store: StoreOf, caller: CallerOf) -> Webhook:
    """Delete a webhook; an event that is on its way may still arrive."""
    with store.catalog.write() as session:
        webhook = session.webhooks.get(webhook_id, caller.principal).webhook
        session.webhooks.remove(webhook_id, caller.principal)
        session.audit.add(str(caller.principal), "delete webhook", webhook_id)
    return webhook


@router.post("/{webhook_id}:enable")
def enable_webhook(webhook_id: Id, store: StoreOf, caller: CallerOf) -> Webhook:
    """Send again, what is stored from now on, to a webhook that was disabled or is failing."""
    with store.catalog.write() as session:
        return session.webhooks.enable(webhook_id, caller.principal, position=session.events.newest())


@router.post("/{webhook_id}:test")
async def test_webhook(webhook_id: Id, request: Request, store: StoreOf, caller: CallerOf) -> Delivery:
    """Send an event of kind `test` now, and return what came of it."""
    settings: ServerSettings = request.app.state.settings
    stored = await run_sync(_stored, store, webhook_id, caller)
    event = Event(event_id=stored.webhook.position, kind=EventKind.TEST, at_ns=time.time_ns())
    async with request.app.state.tests_at_once:
        attempt = await send_event(stored, event, settings.webhook_networks)
    tried = replace(stored, webhook=replace(stored.webhook, attempts=0))
    made = delivery(tried, event, attempt)
    await run_sync(_note, store, made)
    return made


def _stored(store: Store, webhook_id: str, caller: Caller) -> StoredWebhook:
    with store.catalog.read() as session:
        return session.webhooks.get(webhook_id, caller.principal)


def _note(store: Store, made: Delivery) -> None:
    with store.catalog.write() as session:
        session.webhooks.note(made)


def _check_lasts(session: Session, caller: Caller) -> None:
    """Refuse a webhook of a browser's session, which ends with it. Raises: ForbiddenError."""
    if caller.token_id is not None and session.tokens.get(caller.token_id).use is TokenUse.SESSION:
        raise ForbiddenError("a browser's session makes no webhooks, which would end with it: use a token")
