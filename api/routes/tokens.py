"""Tokens: administrators manage all, people their own, and an agent makes some for the jobs of its node."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field

from crosswind.api.access.caller import Caller
from crosswind.api.access.token_cache import TokenCache
from crosswind.api.dependencies import CallerOf, StoreOf
from crosswind.api.paging import ListQuery, Page
from crosswind.api.tables.listing import Listing
from crosswind.api.wire import Id, Name, RequestBody, refuse_unknown_query
from crosswind.data.catalog.catalog import Session
from crosswind.data.catalog.tokens import SECONDS_MAX, not_in_catalog
from crosswind.data.schema.access import Principal, PrincipalKind, Role, Scope, TokenUse
from crosswind.data.schema.answers.tokens import IssuedToken, Token
from crosswind.data.schema.errors import ForbiddenError
from crosswind.data.store.store import Store

router = APIRouter(prefix="/v1", tags=["tokens"], dependencies=[Depends(refuse_unknown_query)])
DAY_SECONDS = 86_400
LINK_SECONDS_MAX = 3600
JOB_SCOPES = frozenset({Scope.READ, Scope.TUNE, Scope.INGEST})
Seconds = Annotated[float, Field(gt=0, le=SECONDS_MAX, allow_inf_nan=False)]


Word = Field(strict=False)  # JSON has no enumerations


class TokenRequest(RequestBody):
    """Whom a token is to stand for, and how long; without a name, for the caller, with the same scopes or fewer."""

    name: Annotated[Name | None, Field(description="login name, job id, host or what you call a service")] = None
    kind: Annotated[PrincipalKind, Word] = PrincipalKind.SERVICE
    role: Annotated[Role, Word] = Role.USER
    scopes: Annotated[
        list[Annotated[Scope, Word]] | None, Field(min_length=1, description="null: the caller's; with a name, `read`")
    ] = None
    user: Annotated[Name | None, Field(description="whose rows it may see; of a person their own name")] = None
    accounts: Annotated[
        list[Name], Field(default_factory=list, max_length=100, description="whose rows it may see as well")
    ]
    system: Annotated[Name | None, Field(description="where a job runs, which its token needs")] = None
    seconds: Seconds = 90 * DAY_SECONDS

    def principal(self, caller: Principal) -> Principal:
        """Return whom the token is to stand for."""
        if self.name is None:
            return replace(caller, scopes=frozenset(self.scopes or caller.scopes))
        return Principal(
            kind=self.kind,
            name=self.name,
            role=self.role,
            scopes=frozenset(self.scopes or {Scope.READ}),
            user=self.user or (self.name if self.kind is PrincipalKind.PERSON else None),
            accounts=frozenset(self.accounts),
            system=self.system,
        )


class LinkRequest(TokenRequest):
    """Whom a link is to log in, once, and how long it may wait for that."""

    seconds: Annotated[float, Field(gt=0, le=LINK_SECONDS_MAX, allow_inf_nan=False)] = 600.0


class JobTokenRequest(RequestBody):
    """A job of the agent's node, and how long its token is to hold."""

    job_id: Name
    system: Annotated[Name | None, Field(description="null: the agent's")] = None
    seconds: Annotated[float, Field(gt=0, le=30 * DAY_SECONDS, allow_inf_nan=False)] = float(DAY_SECONDS)


class TokenPage(Page):
    """Part of the list of tokens, oldest first."""

    tokens: list[Token]


TOKENS = Listing(TokenPage, "tokens", ("token_id",), ("token_id",))


@router.get("/tokens", **TOKENS.route)
def list_tokens(query: Annotated[ListQuery, Query()], request: Request, store: StoreOf, caller: CallerOf) -> Response:
    """Return tokens, also some that hold no more: of an administrator all, of everybody else their own."""
    asked = TOKENS.asked(query, request)
    owner = None if caller.principal.allows(Scope.ADMIN) else caller.principal
    with store.catalog.read() as session:
        return asked.answer(session.tokens.find(owner, asked.part))


@router.post("/tokens", status_code=201)
def create_token(body: TokenRequest, response: Response, store: StoreOf, caller: CallerOf) -> IssuedToken:
    """Create a token; the answer holds its secret, which cannot be read again."""
    return _issue(body, response, store, caller, use=TokenUse.PROGRAM)


@router.post("/tokens:link", status_code=201)
def create_link(body: LinkRequest, response: Response, store: StoreOf, caller: CallerOf) -> IssuedToken:
    """Create a secret that logs a browser in once, at `/login?link=SECRET`."""
    return _issue(body, response, store, caller, use=TokenUse.LINK)


@router.post("/tokens:job", status_code=201)
def create_job_token(body: JobTokenRequest, response: Response, store: StoreOf, caller: CallerOf) -> IssuedToken:
    """Create a token for a job; of a node's agent, for jobs that are not known to run elsewhere alone.

    It stands for that job's rows and no others. It ends with the agent's own token.
    """
    system = body.system or caller.principal.system
    principal = Principal(PrincipalKind.JOB, body.job_id, scopes=JOB_SCOPES, system=system)
    with store.catalog.write() as session:
        if not caller.principal.allows(Scope.ADMIN):
            _check_agent(session, caller.principal, principal)
        issued = session.tokens.issue(
            principal, body.seconds, created_by=str(caller.principal), parent_id=caller.token_id
        )
    response.headers["Cache-Control"] = "no-store"
    return issued


@router.post("/tokens/{token_id}:revoke")
def revoke_token(token_id: Id, request: Request, store: StoreOf, caller: CallerOf) -> Token:
    """End a token, and those that were made with it; within a second no server takes it any more."""
    with store.catalog.write() as session:
        token = session.tokens.get(token_id)
        if not (caller.principal.allows(Scope.ADMIN) or token.principal.is_same(caller.principal)):
            raise not_in_catalog(token_id)
        revoked = session.tokens.revoke(token_id, by=str(caller.principal))
    cache: TokenCache = request.app.state.tokens
    cache.forget()
    return revoked


def _issue(body: TokenRequest, response: Response, store: Store, caller: Caller, *, use: TokenUse) -> IssuedToken:
    """Issue what the caller may give. Raises: ForbiddenError."""
    giver = caller.principal
    wanted = body.principal(giver)
    if not giver.allows(Scope.ADMIN) and giver.kind is not PrincipalKind.PERSON:
        raise ForbiddenError(f"{giver} creates no tokens: this needs the scope {Scope.ADMIN}")
    if not giver.covers(wanted):
        raise ForbiddenError(f"{giver} creates tokens for themselves, with scopes of their own, alone")
    with store.catalog.write() as session:
        issued = session.tokens.issue(wanted, body.seconds, created_by=str(giver), use=use, parent_id=caller.token_id)
    response.headers["Cache-Control"] = "no-store"
    return issued


def _check_agent(session: Session, agent: Principal, job: Principal) -> None:
    """Refuse what no agent may do: another principal, or a job that the catalog has on other nodes alone.

    Raises: ForbiddenError.
    """
    if agent.kind is not PrincipalKind.AGENT:
        raise ForbiddenError(f"{agent} creates no tokens of jobs: an agent or the scope admin does")
    if agent.system is None or agent.system != job.system:
        raise ForbiddenError(f"agent {agent.name} is of system {agent.system}, expected {job.system}, that of the job")
    nodes = {place.node for place in session.places.allocations(job.name, system=job.system)}
    if nodes and agent.name not in nodes:
        raise ForbiddenError(f"job {job.name:.80} is on other nodes than {agent.name}")
