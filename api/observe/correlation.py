"""The id and the trace of a request, which its answer, its log lines and further requests carry."""

import logging
import re
import secrets
import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Self

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crosswind.api.observe.traces import Traces
from crosswind.api.telemetry import route_of

REQUEST_ID, TRACEPARENT, TRACESTATE = "x-request-id", "traceparent", "tracestate"
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
    def of(cls, headers: Mapping[str, str]) -> Self:
        """Return that of a request with these header fields; what is not valid there is made anew."""
        match = PARENT.fullmatch(headers.get(TRACEPARENT, ""))
        trace_id, parent_id, flags, beyond = match.groups() if match else (None, None, "00", None)
        is_valid = bool(match and set(match[1]) != {"0"} and set(match[2]) != {"0"}) and not (
            beyond and match and match.string.startswith("00")
        )
        if not is_valid or trace_id is None:
            trace_id, parent_id, flags = secrets.token_hex(16), None, "00"
        given = headers.get(REQUEST_ID, "")
        request_id = given if ID.fullmatch(given) else trace_id
        return cls(request_id, trace_id, secrets.token_hex(8), parent_id, flags)

    @property
    def traceparent(self) -> str:
        """The field that names our own span as the parent of what follows."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"


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
        correlation, status, began = Correlation.of(Headers(scope=scope)), 500, time.perf_counter()
        if self._traces is not None and correlation.parent_id is None:
            correlation = replace(correlation, flags="01")

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                fields = MutableHeaders(scope=message)
                fields[REQUEST_ID], fields[TRACEPARENT] = correlation.request_id, correlation.traceparent
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
