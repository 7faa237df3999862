"""OpenTelemetry traces, where the standard environment variables name a receiver; nothing is loaded where not."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from starlette.types import Scope

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.store.store import Store

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PACKAGES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
END_MILLISECONDS = 2000
SPANS = "spans"  # of a connection's queries in progress
Note = Callable[[str, int], None]
_given: ContextVar[tuple[int, int] | None] = ContextVar("ids", default=None)  # of the next span: a request's own


class Placed(Protocol):
    """The place of a request in a trace."""

    @property
    def trace_id(self) -> str:
        """32 hexadecimal digits."""
        ...

    @property
    def span_id(self) -> str:
        """16 hexadecimal digits."""
        ...

    @property
    def parent_id(self) -> str | None:
        """The same of the caller's span."""
        ...

    @property
    def flags(self) -> str:
        """2 hexadecimal digits; the last bit: the caller records this trace."""
        ...


def wants_traces(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether the environment names a receiver. Raises: InvalidInputError where the packages are not there."""
    is_off = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if is_off or not any(environment.get(name) for name in ENDPOINTS):
        return False
    try:
        is_there = None not in map(find_spec, PACKAGES)
    except ModuleNotFoundError:  # of the package around them
        is_there = False
    if not is_there:
        raise InvalidInputError(f"{ENDPOINTS[1]} is set, and traces need pip install 'crosswind[otel]'")
    return True


class Traces:
    """Spans of requests and of the queries that they make, sent to an OTLP receiver in the background."""

    def __init__(self, version: str) -> None:
        self._provider = _provider(version)
        self._tracer = self._provider.get_tracer("crosswind", version)

    @contextmanager
    def request(self, scope: Scope, place: Placed) -> Iterator[Note]:
        """Record a request's span, which has the ids of its place; call what is yielded with route and status."""
        from opentelemetry import trace  # noqa: PLC0415 - only where traces are wanted

        context = None
        if place.parent_id is not None:
            parent = trace.SpanContext(
                int(place.trace_id, 16),
                int(place.parent_id, 16),
                is_remote=True,
                trace_flags=trace.TraceFlags(int(place.flags, 16) & 1),
            )
            context = trace.set_span_in_context(trace.NonRecordingSpan(parent))
        _given.set((int(place.trace_id, 16), int(place.span_id, 16)))
        facts = {"http.request.method": scope["method"], "url.scheme": scope["scheme"]}
        with self._tracer.start_as_current_span(
            scope["method"], context, trace.SpanKind.SERVER, attributes=facts
        ) as span:

            def note(route: str, status: int) -> None:
                span.update_name(f"{scope['method']} {route}")
                span.set_attributes({"http.route": route, "http.response.status_code": status})
                if status >= 500:
                    span.set_status(trace.StatusCode.ERROR)

            yield note

    def watch(self, store: Store) -> None:
        """Record the queries of a store as well: the catalog's by their first word, the lake's without their text."""
        from sqlalchemy import event  # noqa: PLC0415 - with the rest

        store.lake.around = lambda: self._query("lake", "duckdb")
        engine = store.catalog.engine
        event.listen(engine, "before_cursor_execute", self._begin_query)
        event.listen(engine, "after_cursor_execute", self._end_query)
        event.listen(engine, "handle_error", self._end_failed)

    def end(self) -> None:
        """Send what is left, in two seconds at most."""
        self._provider.force_flush(END_MILLISECONDS)
        self._provider.shutdown()

    def _query(self, name: str, system: str) -> AbstractContextManager[Any]:
        span: AbstractContextManager[Any] = self._tracer.start_as_current_span(
            f"{name} query", attributes={"db.system.name": system}
        )
        return span

    def _begin_query(self, connection: Any, _cursor: Any, statement: str, *_further: Any) -> None:
        word = statement.split(None, 1)[0].lower()[:20]
        facts = {"db.system.name": connection.dialect.name, "db.operation.name": word}
        connection.info.setdefault(SPANS, []).append(self._tracer.start_span(f"catalog {word}", attributes=facts))

    def _end_query(self, connection: Any, *_further: Any) -> None:
        if spans := connection.info.get(SPANS):
            spans.pop().end()

    def _end_failed(self, context: Any) -> None:
        if context.connection is not None:
            self._end_query(context.connection)


class _Ids:
    """Makes the ids of spans: those that a request has already, or random ones."""

    def generate_trace_id(self) -> int:
        """Return 128 bits."""
        given = _given.get()
        return given[0] if given else int.from_bytes(os.urandom(16)) or 1

    def generate_span_id(self) -> int:
        """Return 64 bits."""
        given = _given.get()
        _given.set(None)
        return given[1] if given else int.from_bytes(os.urandom(8)) or 1

    def is_trace_id_random(self) -> bool:
        """Return whether trace ids are of random bits, which a caller's may not be."""
        return False


def _provider(version: str) -> "TracerProvider":
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    name = os.environ.get("OTEL_SERVICE_NAME") or "crosswind"
    resource = Resource.create({"service.name": name, "service.version": version})
    provider = TracerProvider(resource=resource, id_generator=_Ids(), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider
