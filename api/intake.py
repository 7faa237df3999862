"""Intake of agents' segments into the store: few at once, off the event loop, in bounded memory."""

import copy
import ctypes
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from io import BytesIO
from threading import Lock
from typing import Annotated

import pyarrow as pa
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Depends, Request
from starlette.exceptions import HTTPException

from crosswind.api.body_check import BodyRule
from crosswind.api.dependencies import asking
from crosswind.api.problems import MALFORMED, MEDIA_TYPE, TOO_LARGE
from crosswind.api.quota import charge
from crosswind.api.settings import ServerSettings
from crosswind.api.unpack import codings, unpack
from crosswind.data.schema.access import Principal
from crosswind.data.schema.errors import MalformedError
from crosswind.data.store.store import Store
from crosswind.ingest.load.receive import Received, check_name, receive
from crosswind.ingest.spool.segment_reader import Unpacked

MEDIA = "application/vnd.crosswind.segment"
LARGE_BYTES = 8 * 1024 * 1024  # of a segment unpacked: larger ones are stored one after the other
WORKERS = 4  # storing: one computes while others wait for the disk; each holds one unpacked segment


def segment_rule(settings: ServerSettings) -> BodyRule:
    """Return the rule for the body of a request that sends a segment."""
    return BodyRule(MEDIA, settings.batch_bytes, at_once=WORKERS)


def give_back_memory() -> None:
    """Give what this thread has freed back to the system; allocators keep it, in each thread, for later."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # glibc alone
        ctypes.CDLL(None).malloc_trim(0)


class Intake:
    """Stores segments that agents send."""

    def __init__(self, store: Store, settings: ServerSettings) -> None:
        self._store = store
        self._settings = settings
        self._workers = CapacityLimiter(WORKERS)
        self._large = Lock()

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
        return await run_sync(self._take, body, coding, name, batch_id, limiter=self._workers)

    def _take(self, body: bytes, coding: str, name: str, batch_id: str) -> Received:
        content = BytesIO()
        with ExitStack() as turn:
            for piece in self._pieces(body, coding):
                if content.tell() <= LARGE_BYTES < content.tell() + len(piece):
                    turn.enter_context(self._large)
                    turn.callback(give_back_memory)
                content.write(piece)
            segment = Unpacked(name, content.getvalue())
            charge(self._store, len(segment.content), self._settings.quota_bytes)
            return receive(self._store, segment, batch_id, rejected_bytes=self._settings.rejected_bytes)

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
