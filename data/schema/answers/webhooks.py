"""Webhooks, as they are listed: addresses that a server sends events to."""

from dataclasses import dataclass, field
from enum import StrEnum

from crosswind.data.schema.answers.events import EventFilter, EventKind
from crosswind.data.schema.answers.fields import about, fill_texts, text_of


class WebhookState(StrEnum):
    """The state of a webhook; one that is `failing` is tried again, a disabled one is not."""

    ACTIVE = "active"
    FAILING = "failing"
    DISABLED = "disabled"


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """An address that gets the events which meet the conditions and which its owner may see when they are sent."""

    webhook_id: str
    url: str
    conditions: EventFilter
    owner: str
    state: WebhookState
    position: int = field(metadata=about("id of the last event that was sent or passed over"))
    attempts: int = field(metadata=about("at the next event that failed so far"))
    created_at: str | None = field(default=None, metadata=text_of("created_ns"))
    created_ns: int
    failing_since_at: str | None = field(default=None, metadata=text_of("failing_since_ns"))
    failing_since_ns: int | None = None
    next_try_at: str | None = field(default=None, metadata=text_of("next_try_ns"))
    next_try_ns: int | None = None
    disabled_at: str | None = field(default=None, metadata=text_of("disabled_ns"))
    disabled_ns: int | None = None
    disabled_reason: str | None = None

    def __post_init__(self) -> None:
        fill_texts(self)


@dataclass(frozen=True, kw_only=True)
class CreatedWebhook:
    """A new webhook with the secret that signs what it is sent, which is shown this once."""

    secret: str
    webhook: Webhook


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """One attempt to send one event; `error` says why it failed."""

    delivery_id: str
    webhook_id: str
    event_id: int
    kind: EventKind
    at: str | None = field(default=None, metadata=text_of("at_ns"))
    at_ns: int
    attempt: int
    status: int | None = field(metadata=about("HTTP status of the receiver's answer; null without one"))
    error: str | None
    seconds: float

    def __post_init__(self) -> None:
        fill_texts(self)
