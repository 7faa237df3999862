"""Bounds on what is computed at the same time, so that health and ingest are answered beside it."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from weakref import WeakValueDictionary

from anyio import CapacityLimiter
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crosswind.api.access.caller import PRINCIPAL
from crosswind.api.prefix import inner_path
from crosswind.api.problems import BUSY, problem
from crosswind.data.schema.access import NOBODY, Principal

LISTS_AT_ONCE = max(1, min(4, len(os.sched_getaffinity(0)) - 1))  # of runs: short, and all of it holds the interpreter
AT_ONCE = max(2, LISTS_AT_ONCE)  # computations of each kind; more are no faster in sum
WAITING_MAX = 200  # of each kind
SWITCH_SECONDS = 0.0002  # after which a thread that computes gives the interpreter to one that waits for it
CHEAP = (
    "/healthz",
    "/readyz",
    "/metrics",
    "/problems/",
    "/static/",
    "/openapi.json",
    "/docs",
    "/status",
    "/v1/ingest/",
    "/v1/operations/",
    "/v1/webhooks",
)
CHEAP_PATHS = frozenset(
    (
        *("/login", "/login/oidc", "/login/oidc/callback", "/logout", "/v1/events"),
        "/v1/predictions",  # it bounds itself: most of its answers are cached
    )
)
STUDIES, RUNS, ANSWERS, SQL = "/v1/studies", "/v1/runs", "answers", "sql"
SQL_PATHS = frozenset(
    {"/v1/sql", *(f"{top}/sql{form}" for top in ("", "/example") for form in ("", ".json", ".csv", ".html"))}
)
SQL_AT_ONCE = 2  # statements, of two callers, each with a process of its own

Places = Mapping[str, CapacityLimiter]


def places_of(at_once: int = AT_ONCE) -> Places:
    """Return the places of each kind of computation."""
    bounds = {STUDIES: at_once, RUNS: min(at_once, LISTS_AT_ONCE), ANSWERS: at_once, SQL: SQL_AT_ONCE}
    return {kind: CapacityLimiter(bound) for kind, bound in bounds.items()}


class Workers:
    """Lets few computations begin at once; the others wait in order, and too many are refused.

    Every path is taken for costly that is not listed as cheap. Studies, lists of runs and SQL have their own places, so
    that jobs that wait for a trial do not wait for explanations, and nobody for statements, of which a caller has one
    at a time. A client that leaves gives up its place.
    """

    def __init__(
        self, app: ASGIApp, at_once: int = AT_ONCE, waiting_max: int = WAITING_MAX, *, places: Places | None = None
    ) -> None:
        self.app = app
        self._limiters = places or places_of(at_once)
        self._of_callers: WeakValueDictionary[str, CapacityLimiter] = WeakValueDictionary()
        self._waiting_max = waiting_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on when it is its turn, or answer with a problem."""
        turns = self._turns_of(scope) if scope["type"] == "http" else []
        if not turns:
            await self.app(scope, receive, send)
            return
        if any(turn.statistics().tasks_waiting >= self._waiting_max for turn in turns):
            detail = f"{self._waiting_max} requests wait to be computed"
            await problem(BUSY, detail, root_path=scope.get("root_path", ""))(scope, receive, send)
            return
        async with _Place(turns) as place:
            await self.app(scope, receive, place.between_pieces(send))

    def _turns_of(self, scope: Scope) -> list[CapacityLimiter]:
        """Return the places that a request takes; a statement first that of its caller, who keeps nobody waiting."""
        limiter = self._limiter_of(scope)
        if limiter is not self._limiters[SQL]:
            return [] if limiter is None else [limiter]
        principal: Principal = scope.get("state", {}).get(PRINCIPAL, NOBODY)
        return [self._of_callers.setdefault(principal.mark, CapacityLimiter(1)), limiter]

    def _limiter_of(self, scope: Scope) -> CapacityLimiter | None:
        path = inner_path(scope["path"], scope.get("root_path", ""))
        if path.startswith(CHEAP) or (path in CHEAP_PATHS and not wants_table(scope)):
            return None
        if path in SQL_PATHS:
            return self._limiters[SQL]
        if path == RUNS and not wants_table(scope):
            return self._limiters[RUNS]
        return self._limiters[STUDIES if path.startswith(STUDIES) else ANSWERS]


class _Place:
    """A place among those who compute; it is free while a client takes in a piece of a long answer."""

    def __init__(self, turns: Sequence[CapacityLimiter]) -> None:
        self._turns = turns
        self._held: list[CapacityLimiter] = []

    async def __aenter__(self) -> "_Place":
        await self._enter()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._leave()

    def between_pieces(self, send: Send) -> Send:
        """Return a `send` that gives up the place until a piece with more behind it is sent."""

        async def send_piece(message: Message) -> None:
            if not message.get("more_body"):
                await send(message)
                return
            self._leave()
            await send(message)
            await self._enter()

        return send_piece

    async def _enter(self) -> None:
        try:
            for turn in self._turns:
                await turn.acquire_on_behalf_of(self)
                self._held.append(turn)
        except BaseException:
            self._leave()
            raise

    def _leave(self) -> None:
        while self._held:
            self._held.pop().release_on_behalf_of(self)


def wants_table(scope: Scope) -> bool:
    """Return whether a request may want thousands of rows: it names another format than JSON."""
    accept = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    return any(word in text for text in (accept, scope["query_string"]) for word in (b"csv", b"arrow", b"text/*"))


@contextmanager
def prompt_threads() -> Iterator[None]:
    """Within the context, threads that answer need not wait long for those that compute."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
