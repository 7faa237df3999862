"""Tokens of the store here, or of a server."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Protocol, TypeVar

from crosswind.client.connection import server_address
from crosswind.client.decoding import decode
from crosswind.client.http import Server, segment
from crosswind.data.schema.access import Principal, TokenUse, this_person
from crosswind.data.schema.answers.tokens import IssuedToken, Token
from crosswind.settings import Settings

if TYPE_CHECKING:  # heavy
    from crosswind.data.store.store import Store

T = TypeVar("T")
PATH = "/v1/tokens"


class TokenService(Protocol):
    """Creates, lists and ends tokens. Methods raise as `Client`'s do."""

    def create(self, principal: Principal, seconds: float, use: TokenUse = TokenUse.PROGRAM) -> IssuedToken:
        """Return a new token with its secret; of use PROGRAM or LINK."""
        ...

    def all(self) -> list[Token]:
        """Return the tokens that the caller may see, oldest first."""
        ...

    def revoke(self, token_id: str) -> Token:
        """End a token and those that were made with it."""
        ...


class LocalTokens:
    """The tokens of the store here; whoever can write to it may do everything."""

    def __init__(self, store: "Store") -> None:
        self._catalog = store.catalog

    def create(self, principal: Principal, seconds: float, use: TokenUse = TokenUse.PROGRAM) -> IssuedToken:
        """As POST /v1/tokens, and :link."""
        with self._catalog.write() as session:
            return session.tokens.issue(principal, seconds, created_by=this_person(), use=use)

    def all(self) -> list[Token]:
        """As GET /v1/tokens."""
        with self._catalog.read() as session:
            return session.tokens.find()

    def revoke(self, token_id: str) -> Token:
        """As POST /v1/tokens/{token_id}:revoke."""
        with self._catalog.write() as session:
            return session.tokens.revoke(token_id, by=this_person())


class RemoteTokens:
    """The tokens of a server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def create(self, principal: Principal, seconds: float, use: TokenUse = TokenUse.PROGRAM) -> IssuedToken:
        """As POST /v1/tokens, and :link."""
        facts = {**asdict(principal), "scopes": sorted(principal.scopes), "accounts": sorted(principal.accounts)}
        path = f"{PATH}:link" if use is TokenUse.LINK else PATH
        return self._decoded(IssuedToken, self._server.post_once(path, {**facts, "seconds": seconds}))

    def all(self) -> list[Token]:
        """As GET /v1/tokens, all parts."""
        return [self._decoded(Token, one) for one in self._server.rows(PATH, "tokens")]

    def revoke(self, token_id: str) -> Token:
        """As POST /v1/tokens/{token_id}:revoke."""
        return self._decoded(Token, self._server.post_once(f"{PATH}/{segment(token_id)}:revoke", {}))

    def _decoded(self, kind: type[T], value: object) -> T:
        try:
            return decode(kind, value)
        except (ValueError, TypeError) as error:
            raise self._server.malformed(error) from error


@contextmanager
def token_service(server: str | None, settings: Settings) -> Iterator[TokenService]:
    """Yield the tokens of the server at this URL or $CROSSWIND_SERVER; without one, of the store of this machine."""
    if address := server_address(server):
        with closing(Server(address)) as there:
            yield RemoteTokens(there)
        return
    from crosswind.client.installed_store import open_store  # noqa: PLC0415 - heavy

    with open_store(settings) as store:
        yield LocalTokens(store)
