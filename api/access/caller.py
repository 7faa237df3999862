"""The caller of a request: by its token, a trusted proxy, a browser's session, or the kernel."""

import hmac
import re
from dataclasses import dataclass

from starlette.types import Scope as Request

from crosswind.api.access.credentials import Credentials
from crosswind.api.access.proxy import TrustedProxy
from crosswind.api.access.token_cache import TokenCache
from crosswind.api.peer import PEER, Peer
from crosswind.api.settings import ServerSettings
from crosswind.data.catalog.tokens import digest_of
from crosswind.data.schema.access import Principal, PrincipalKind, Role, Scope, TokenUse, owner
from crosswind.data.schema.errors import ProjectError
from crosswind.data.schema.login import login_name

PRINCIPAL, TOKEN_ID = "principal", "token_id"  # their names in the state of a request
CONFIGURED = "configuration "  # begins the name of the service that CROSSWIND_TOKEN stands for
PERSON_SCOPES = frozenset({Scope.READ, Scope.TUNE})  # of a person whom the kernel or a proxy names
LOGIN_NAME = re.compile(r"[^\s,;\x00-\x1f\x7f-\xa0]{1,200}")
DIGEST_SHOWN = 8
NOBODY = "this server requires a token from you: whoever runs it makes one by `crosswind token create`"


@dataclass(frozen=True)
class Caller:
    """A principal that makes a request, and the token that says so, if one does."""

    principal: Principal
    token_id: str | None = None


class UnauthorizedError(ProjectError):
    """Nobody knows who makes this request."""


class BadTokenError(UnauthorizedError):
    """A token was given, and does not hold."""


class Callers:
    """Says who makes a request to a server with these settings."""

    def __init__(self, settings: ServerSettings, tokens: TokenCache) -> None:
        self._settings = settings
        self._tokens = tokens
        self._proxy = None if settings.trusted_proxy is None else TrustedProxy.of(settings.trusted_proxy)
        self._user_header = settings.user_header.lower().encode() if self._proxy else None
        self._configured = None if settings.token is None else digest_of(settings.token)
        # Sessions that were begun with an earlier CROSSWIND_TOKEN bear another name, and end with it.
        name = f"{CONFIGURED}{(self._configured or '')[:DIGEST_SHOWN]}"
        self._configured_caller = Caller(Principal(PrincipalKind.SERVICE, name, Role.ADMIN, frozenset(Scope)))

    async def caller_of(self, request: Request) -> Caller:
        """Return who makes this request. A token that is given must hold; then nothing else counts.

        Raises: UnauthorizedError; what database.NO_ANSWER holds.
        """
        given = Credentials.of(request["headers"], self._user_header)
        peer: Peer = request.get("state", {}).get(PEER, Peer())
        if given.token is not None:
            return await self.caller_with(given.token)
        if given.named_user is not None and self._proxy and self._proxy.is_at(peer):
            return Caller(person(given.named_user))
        if given.session is not None and (caller := await self._in_session(given.session)):
            return caller
        if not given.is_forwarded and self._settings.trusts_kernel and (caller := self._by_kernel(peer)):
            return caller
        raise UnauthorizedError(NOBODY if given.session is None else "the session has ended: log in again")

    def still_holds(self, principal: Principal) -> bool:
        """Return whether a principal that brought no token of the catalog could still come."""
        return not principal.name.startswith(CONFIGURED) or principal == self._configured_caller.principal

    async def caller_with(self, secret: str) -> Caller:
        """Return whom a program's token stands for. Raises: UnauthorizedError; what database.NO_ANSWER holds."""
        if self._configured and hmac.compare_digest(digest_of(secret), self._configured):
            return self._configured_caller
        token = await self._tokens.find(secret)
        if token is None or token.use is not TokenUse.PROGRAM:
            raise BadTokenError("the token is unknown here")
        if refusal := token.refusal(self._tokens.now_ns()):
            raise BadTokenError(refusal)
        return Caller(token.principal, token.token_id)

    async def _in_session(self, secret: str) -> Caller | None:
        token = await self._tokens.find(secret)
        if token is None or token.use is not TokenUse.SESSION or token.refusal(self._tokens.now_ns()):
            return None
        return Caller(token.principal, token.token_id) if self.still_holds(token.principal) else None

    def _by_kernel(self, peer: Peer) -> Caller | None:
        if peer.is_own_or_root:
            return Caller(owner(peer.uid))
        if not peer.is_unix or peer.uid is None:
            return None
        return Caller(person(login_name(peer.uid)))


def person(name: str) -> Principal:
    """Return the person with this login name, for whom the kernel or a proxy vouches. Raises: UnauthorizedError."""
    if not LOGIN_NAME.fullmatch(name):
        raise UnauthorizedError(f"user {name!r:.80}: expected one login name")
    return Principal(PrincipalKind.PERSON, name, Role.USER, PERSON_SCOPES, user=name)
