"""Counts that the server keeps about itself, in Prometheus' text format."""

import threading
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send

BOUNDS_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
STREAM = b"text/event-stream"
UNMATCHED = "unmatched"  # every path that is no route, so that callers cannot create series


@dataclass(frozen=True)
class Point:
    """One number of a metric; `suffix` is what a histogram's parts add to the metric's name."""

    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    suffix: str = ""


@dataclass(frozen=True)
class Family:
    """One metric with its numbers; `kind` is counter, gauge or histogram."""

    name: str
    kind: str
    description: str
    points: Sequence[Point]


class RequestCounts:
    """Requests since the server started, by route, method and status; durations by route."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BOUNDS_SECONDS) + 1))
        self._seconds: dict[str, float] = defaultdict(float)

    def count(self, route: str, method: str, status: int, *, seconds: float) -> None:
        """Count one answered request."""
        with self._lock:
            self._requests[route, method if method in METHODS else "other", status] += 1
            self._buckets[route][bisect_left(BOUNDS_SECONDS, seconds)] += 1
            self._seconds[route] += seconds

    def by_status(self) -> dict[str, int]:
        """Return how many requests were answered with each status."""
        with self._lock:
            sums: Counter[str] = Counter()
            for (_, _, status), count in self._requests.items():
                sums[str(status)] += count
        return dict(sorted(sums.items()))

    def families(self) -> list[Family]:
        """Return the counts as metrics."""
        with self._lock:
            requests = [
                Point(count, {"route": route, "method": method, "status": str(status)})
                for (route, method, status), count in self._requests.items()
            ]
            durations = [point for route in self._buckets for point in self._histogram(route)]
        return [
            Family("crosswind_http_requests_total", "counter", "Requests answered.", requests),
            Family("crosswind_http_request_duration_seconds", "histogram", "Time to answer a request.", durations),
        ]

    def _histogram(self, route: str) -> Iterator[Point]:
        below = 0
        for bound, count in zip((*map(str, BOUNDS_SECONDS), "+Inf"), self._buckets[route], strict=True):
            below += count
            yield Point(below, {"route": route, "le": bound}, "_bucket")
        yield Point(self._seconds[route], {"route": route}, "_sum")
        yield Point(below, {"route": route}, "_count")


class Telemetry:
    """Counts every request that passes."""

    def __init__(self, app: ASGIApp, counts: RequestCounts) -> None:
        self.app = app
        self.counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, stream_seconds = 500, None
        began = time.perf_counter()

        async def watch(message: Message) -> None:
            nonlocal status, stream_seconds
            if message["type"] == "http.response.start":
                status = message["status"]
                if any(value.startswith(STREAM) for name, value in message["headers"] if name == b"content-type"):
                    stream_seconds = time.perf_counter() - began  # it was answered then, however long it goes on
            await send(message)

        try:
            await self.app(scope, receive, watch)
        finally:
            self.counts.count(
                route_of(scope), scope["method"], status, seconds=stream_seconds or time.perf_counter() - began
            )


def route_of(scope: Scope) -> str:
    """Return the pattern of the route that answered a request."""
    return str(getattr(scope.get("route"), "path", UNMATCHED))


def exposition(families: Iterable[Family]) -> str:
    """Return the families as Prometheus reads them.

    Source: prometheus.io/docs/instrumenting/exposition_formats, text format 0.0.4.
    """
    return "".join(line for family in families for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    yield f"# HELP {family.name} {family.description}\n# TYPE {family.name} {family.kind}\n"
    for point in family.points:
        pairs = ",".join(f'{name}="{_escaped(text)}"' for name, text in point.labels.items())
        labels = f"{{{pairs}}}" if pairs else ""
        yield f"{family.name}{point.suffix}{labels} {point.value!r}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
