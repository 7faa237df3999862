"""Intake of agents' segments into the store: few at once, off the event loop, in bounded memory."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from io import BytesIO
from threading import Lock
from typing import Annotated

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Depends, Request
from starlette.exceptions import HTTPException

from crosswind.api.body_check import BodyRule
from crosswind.api.dependencies import asking
from crosswind.api.freed_memory import give_back_memory
from crosswind.api.gathering import Gathering
from crosswind.api.problems import MALFORMED, MEDIA_TYPE, TOO_LARGE
from crosswind.api.quota import charge
from crosswind.api.settings import ServerSettings
from crosswind.api.unpack import codings, unpack
from crosswind.data.schema.access import Principal
from crosswind.data.schema.errors import MalformedError
from crosswind.data.store.store import Store
from crosswind.ingest.load.receive import Received, check_name, receive
from crosswind.ingest.load.together import Batch, store_together
from crosswind.ingest.spool.segment_reader import Unpacked

MEDIA = "application/vnd.crosswind.segment"
LARGE_BYTES = 8 * 1024 * 1024  # of a segment unpacked: larger ones are stored one after the other
SMALL_BYTES = 256 * 1024  # of a segment as sent: such ones are stored together when many come at once
UNPACKED_BYTES = 1024 * 1024  # of one of them
TOGETHER, TOGETHER_BYTES = 128, 2 * 1024 * 1024  # at most, and as sent
TOGETHER_UNPACKED_BYTES = 8 * 1024 * 1024  # those beyond are stored by themselves: as values they take ten times that
SMALL_AT_ONCE = 32  # of those that do not arrive in memory
WORKERS = 4  # storing: one computes while others wait for the disk; each holds one unpacked segment


def segment_rule(settings: ServerSettings) -> BodyRule:
    """Return the rule for the body of a request that sends a segment."""
    rule = BodyRule(MEDIA, settings.batch_bytes, at_once=WORKERS)
    return replace(rule, small_bytes=SMALL_BYTES, small_at_once=SMALL_AT_ONCE)


@dataclass(frozen=True)
class _Sent:
    """A segment as it came, and the store as its sender may write it."""

    body: bytes
    coding: str
    name: str
    batch_id: str
    store: Store


class Intake:
    """Stores segments that agents send."""

    def __init__(self, store: Store, settings: ServerSettings) -> None:
        self._store = store
        self._settings = settings
        self.places = CapacityLimiter(WORKERS)
        self._large = Lock()
        self._gathering = Gathering(self._take_together, TOGETHER, lambda one: len(one.body), TOGETHER_BYTES)

    def of_sender(self, sender: Principal) -> "Intake":
        """Return the same intake for a sender, who may write their own rows, up to their quota."""
        intake = copy.copy(self)
        intake._store = self._store.seen_by(sender.write_rule)
        return intake

    async def take(self, body: bytes, coding: str, *, name: str, batch_id: str) -> Received:
        """Store a segment and return its fate.

        Raises: InvalidInputError, ForbiddenError, UnavailableError; HTTPException for a body that cannot be unpacked.
        """
        check_name(name)
        if coding not in codings():
            accepted = ", ".join(codings())
            detail = f"content encoding {coding!r:.40}: expected {accepted}"
            raise HTTPException(MEDIA_TYPE.status, detail, {"Accept-Encoding": accepted})
        sent = _Sent(body, coding, name, batch_id, self._store)
        if len(body) <= SMALL_BYTES and self._store.rule.changes_all:
            received = await self._gathering.result(sent)
            if received is not None:
                return received
        return await self._take_alone(sent)

    async def _take_alone(self, sent: _Sent) -> Received:
        return await run_sync(self._take, sent, limiter=self.places)

    async def _take_together(self, sent: Sequence[_Sent]) -> Sequence[Received | None]:
        """Store what can be stored together; None for what is to be stored by itself, and for whom comes twice.

        One that came alone is stored here too, so that those that come meanwhile wait and are stored together.
        """
        if len(sent) < 2:
            return [await self._take_alone(one) for one in sent]
        stored = await run_sync(self._stored_together, sent)
        return [stored.pop(one.batch_id, None) for one in sent]

    def _stored_together(self, sent: Sequence[_Sent]) -> dict[str, Received]:
        return store_together(self._store.whole, list(self._unpacked(sent)))

    def _unpacked(self, sent: Sequence[_Sent]) -> Iterator[Batch]:
        """Yield the first of them that can be stored together."""
        free = TOGETHER_UNPACKED_BYTES
        for one in sent:
            content = self._content(one)
            if content and len(content) <= free:
                free -= len(content)
                yield Batch(Unpacked(one.name, content), one.batch_id, one.store.rule.nodes)

    def _content(self, sent: _Sent) -> bytes | None:
        """Return the segment; None for one that is large or cannot be unpacked."""
        content = BytesIO()
        with suppress(HTTPException):
            for piece in self._pieces(sent.body, sent.coding):
                content.write(piece)
                if content.tell() > UNPACKED_BYTES:
                    return None
            return content.getvalue()
        return None

    def _take(self, sent: _Sent) -> Received:
        content = BytesIO()
        with ExitStack() as turn:
            for piece in self._pieces(sent.body, sent.coding):
                if content.tell() <= LARGE_BYTES < content.tell() + len(piece):
                    turn.enter_context(self._large)
                    turn.callback(give_back_memory)
                    give_back_memory()
                content.write(piece)
            segment = Unpacked(sent.name, content.getvalue())
            charge(sent.store, len(segment.content), self._settings.quota_bytes)
            return receive(sent.store, segment, sent.batch_id, rejected_bytes=self._settings.rejected_bytes)

    def _pieces(self, body: bytes, coding: str) -> Iterator[bytes]:
        limit, size = self._settings.segment_bytes, 0
        try:
            for piece in unpack(body, coding):
                size += len(piece)
                if size > limit:
                    raise HTTPException(TOO_LARGE.status, f"segment: expected at most {limit} bytes unpacked")
                yield piece
        except MalformedError as error:
            raise HTTPException(MALFORMED.status, str(error)) from error


async def intake_of(request: Request) -> Intake:
    """Return the intake of this application, for whoever sends."""
    intake: Intake = request.app.state.intake
    return intake.of_sender(asking(request))


IntakeOf = Annotated[Intake, Depends(intake_of)]
