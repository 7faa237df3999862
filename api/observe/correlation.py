"""The id and the trace of a request, which its answer, its log lines and further requests carry."""

import logging
import re
import time
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from random import getrandbits
from typing import Self

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crosswind.api.observe.traces import Traces
from crosswind.api.telemetry import route_of

REQUEST_ID, TRACEPARENT = b"x-request-id", b"traceparent"
ID = re.compile(r"[A-Za-z0-9._:@+/=-]{1,64}")
PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
log = logging.getLogger("crosswind.requests")


@dataclass(frozen=True)
class Correlation:
    """The request's id, and its place in a trace: trace, our own span, that of the caller, and the flags.

    Source: W3C Trace Context, section 3.2.
    """

    request_id: str
    trace_id: str
    span_id: str
    parent_id: str | None = None
    flags: str = "00"

    @classmethod
    def of(cls, fields: Iterable[tuple[bytes, bytes]]) -> Self:
        """Return that of a request with these header fields; what is not valid there, or twice, is made anew."""
        given: dict[bytes, str] = {}
        for name, value in fields:
            if name in (REQUEST_ID, TRACEPARENT):
                given[name] = "" if name in given else value.decode("latin-1")
        trace_id, parent_id, flags = _parent(given.get(TRACEPARENT, "")) or (f"{getrandbits(128):032x}", None, "00")
        wanted = given.get(REQUEST_ID, "")
        request_id = wanted if ID.fullmatch(wanted) else trace_id
        return cls(request_id, trace_id, f"{getrandbits(64) or 1:016x}", parent_id, flags)

    @property
    def fields(self) -> list[tuple[bytes, bytes]]:
        """Header fields of the answer."""
        return [(REQUEST_ID, self.request_id.encode()), (TRACEPARENT, self.traceparent.encode())]

    @property
    def traceparent(self) -> str:
        """The field that names our own span as the parent of what follows."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"


def _parent(text: str) -> tuple[str, str, str] | None:
    """Return trace, span and flags of a caller; None where the text is not valid."""
    match = PARENT.fullmatch(text)
    if match is None or not match[1].strip("0") or not match[2].strip("0") or (match[4] and text.startswith("00")):
        return None
    return match[1], match[2], match[3]


_current: ContextVar[Correlation | None] = ContextVar("correlation", default=None)


def current() -> Correlation | None:
    """Return that of the request being answered; None outside of requests."""
    return _current.get()


class Correlating:
    """Gives every request its id and trace, and writes a line for it where the log wants that."""

    def __init__(self, app: ASGIApp, traces: Traces | None = None) -> None:
        self.app = app
        self._traces = traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        correlation, status, began = Correlation.of(scope["headers"]), 500, time.perf_counter()
        if self._traces is not None and correlation.parent_id is None:
            correlation = replace(correlation, flags="01")

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *correlation.fields]
            await send(message)

        before = _current.set(correlation)
        try:
            if self._traces is None:
                await self.app(scope, receive, answer)
            else:
                with self._traces.request(scope, correlation) as note:
                    await self.app(scope, receive, answer)
                    note(route_of(scope), status)
        finally:
            if log.isEnabledFor(logging.INFO):
                seconds = time.perf_counter() - began
                facts = {"method": scope["method"], "route": route_of(scope), "status": status, "seconds": seconds}
                log.info("%(method)s %(route)s %(status)d in %(seconds).4f s", facts)
            _current.reset(before)
