"""Callers over HTTP: each brings a token of Crosswind, which decides what they see and may do."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from crosswind.api.access.caller import Callers, UnauthorizedError
from crosswind.api.access.credentials import Credentials
from crosswind.api.access.scopes import READ, TUNE
from crosswind.api.access.token_cache import TokenCache
from crosswind.api.auth import CHALLENGE
from crosswind.api.problems import OUT_OF_SCOPE, UNAUTHORIZED, UNAVAILABLE, problem
from crosswind.api.settings import ServerSettings
from crosswind.client.local import Local
from crosswind.client.protocol import Client
from crosswind.client.remote import Remote
from crosswind.data.catalog.database import NO_ANSWER
from crosswind.data.schema.errors import ForbiddenError

CLIENT = "crosswind.visitor"
NEEDED = "this needs a token, as `Authorization: Bearer TOKEN`: `crosswind token create` makes one"


@dataclass(frozen=True)
class Visitor:
    """Whoever brings a token: their client, and why they may not change studies, if so."""

    client: Client
    refusal: str | None = None


VisitorOf = Callable[[str], Awaitable[Visitor]]


def of_server(url: str) -> VisitorOf:
    """Return what gives the client of a server for a token: the server decides what it allows."""

    async def visitor(secret: str) -> Visitor:
        return Visitor(Remote(url, secret))

    return visitor


def of_store(client: Local, token: str | None = None) -> VisitorOf:
    """Return what gives the rows of a store that a token lets be seen; `token` is the administrators' configured one.

    It raises UnauthorizedError for a token that stands for nobody, and ForbiddenError for one that may not read.
    """
    callers = Callers(ServerSettings(token=token), TokenCache(client.store.catalog))

    async def visitor(secret: str) -> Visitor:
        principal = (await callers.caller_with(secret)).principal
        if refusal := READ.refusal(principal):
            raise ForbiddenError(refusal)
        return Visitor(client.seen_by(principal.row_rule), TUNE.refusal(principal))

    return visitor


class TokenCheck:
    """Lets requests in whose token stands for somebody, and notes who it is."""

    def __init__(self, app: ASGIApp, visitor_of: VisitorOf) -> None:
        self.app = app
        self._visitor_of = visitor_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its visitor, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        secret = Credentials.of(scope["headers"]).token
        try:
            if not secret:
                raise UnauthorizedError(NEEDED)
            visitor = await self._visitor_of(secret)
        except UnauthorizedError as error:
            await problem(UNAUTHORIZED, str(error), headers={"WWW-Authenticate": CHALLENGE})(scope, receive, send)
        except ForbiddenError as error:
            await problem(OUT_OF_SCOPE, str(error))(scope, receive, send)
        except NO_ANSWER:
            await problem(UNAVAILABLE, "the catalog does not answer")(scope, receive, send)
        else:
            scope.setdefault("state", {})[CLIENT] = visitor
            await self.app(scope, receive, send)
