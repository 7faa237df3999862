"""Intake of samples from Prometheus and OpenTelemetry into the store: few at once, in bounded memory."""

from collections.abc import Callable
from threading import BoundedSemaphore
from typing import Annotated

import pyarrow as pa
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Depends, Request
from starlette.exceptions import HTTPException

from crosswind.api.body_check import BodyRule, checked_json
from crosswind.api.dependencies import asking
from crosswind.api.problems import MALFORMED, MEDIA_TYPE, TOO_LARGE
from crosswind.api.settings import ServerSettings
from crosswind.api.unpack import codings, unpack
from crosswind.data.schema.errors import ForbiddenError, MalformedError
from crosswind.data.store.store import Store
from crosswind.ingest.series.protobuf import varint
from crosswind.ingest.series.receive import Received, Receiver
from crosswind.ingest.series.sizes import TooLargeError

PROTOBUF, JSON = "application/x-protobuf", "application/json"
SNAPPY = ("snappy",)
REMOTE_WRITE, OTLP = "/v1/ingest/prometheus", "/v1/ingest/otlp/v1/metrics"
JSON_BYTES = 1 << 23  # unpacked; in memory it takes up to thirty times as much
UNPACKED_AT_ONCE = 2
WORKERS = 4  # storing: one computes while others wait for the disk


def series_rules(settings: ServerSettings) -> dict[str, BodyRule]:
    """Return the rules for the bodies of requests of both protocols."""
    types = {REMOTE_WRITE: PROTOBUF, OTLP: f"{PROTOBUF}, {JSON}"}
    return {path: BodyRule(media, settings.batch_bytes, at_once=WORKERS) for path, media in types.items()}


class SeriesIntake:
    """Stores samples that other systems send."""

    def __init__(self, store: Store, settings: ServerSettings) -> None:
        self._receiver = Receiver(store)
        self._limit = settings.segment_bytes
        self._workers = CapacityLimiter(WORKERS)
        self._turn = BoundedSemaphore(UNPACKED_AT_ONCE)

    async def remote_write(self, body: bytes, coding: str) -> Received:
        """Return the fate of a WriteRequest. Raises: UnavailableError, HTTPException for a bad body."""
        _check_coding(coding, SNAPPY)
        return await run_sync(
            self._received, lambda: self._receiver.remote_write(self._unsnapped(body)), limiter=self._workers
        )

    async def otlp(self, body: bytes, coding: str, *, is_json: bool) -> Received:
        """Return the fate of an ExportMetricsServiceRequest. Raises: UnavailableError, HTTPException for a bad body."""
        _check_coding(coding, codings())
        return await run_sync(self._received, lambda: self._otlp(body, coding, is_json), limiter=self._workers)

    def _received(self, take: Callable[[], Received]) -> Received:
        try:
            with self._turn:
                return take()
        except TooLargeError as error:
            raise HTTPException(TOO_LARGE.status, str(error)) from error
        except MalformedError as error:
            raise HTTPException(MALFORMED.status, str(error)) from error

    def _otlp(self, body: bytes, coding: str, is_json: bool) -> Received:
        pieces, size = [], 0
        for piece in unpack(body, coding):
            pieces.append(piece)
            size += len(piece)
            self._check_size(size, JSON_BYTES if is_json else self._limit)
        content = b"".join(pieces)
        return self._receiver.otlp(content, checked_json) if is_json else self._receiver.otlp(content)

    def _unsnapped(self, body: bytes) -> bytes:
        """Return the content of a snappy block, which begins with its length."""
        size, _ = varint(body, 0)
        self._check_size(size, self._limit)
        try:
            content: bytes = pa.decompress(body, decompressed_size=size, codec="snappy", asbytes=True)
        except (OSError, pa.ArrowException) as error:
            raise MalformedError("body: expected one block of snappy's raw format") from error
        return content

    def _check_size(self, size: int, limit: int) -> None:
        if size > min(limit, self._limit):
            raise HTTPException(TOO_LARGE.status, f"body: expected at most {min(limit, self._limit)} bytes unpacked")


def _check_coding(coding: str, supported: tuple[str, ...]) -> None:
    if coding not in supported:
        accepted = ", ".join(supported)
        detail = f"content encoding {coding!r:.40}: expected {accepted}"
        raise HTTPException(MEDIA_TYPE.status, detail, {"Accept-Encoding": accepted})


async def series_intake_of(request: Request) -> SeriesIntake:
    """Return the intake of this application."""
    rule = asking(request).write_rule
    if not rule.changes_all or rule.nodes:
        raise ForbiddenError("series are of nodes, not of one user or node: expected a token that is bound to nobody")
    intake: SeriesIntake = request.app.state.series_intake
    return intake


SeriesIntakeOf = Annotated[SeriesIntake, Depends(series_intake_of)]
