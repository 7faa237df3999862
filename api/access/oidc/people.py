"""People, as a provider's claims describe them."""

from collections.abc import Mapping
from typing import Any

from crosswind.api.access.caller import LOGIN_NAME, PERSON_SCOPES, UnauthorizedError, person
from crosswind.api.access.oidc.provider import CREATED_BY
from crosswind.api.oidc_settings import OidcSettings
from crosswind.data.catalog.catalog import Session
from crosswind.data.schema.access import Principal, Role, Scope
from crosswind.data.schema.login import login_name

RANK = (Role.USER, Role.SUPPORT, Role.ADMIN)
ACCOUNTS_MAX = 100
SYSTEM_NAMES = frozenset({"root", "owner", "nobody"})


def person_of(claims: Mapping[str, Any], settings: OidcSettings) -> Principal:
    """Return who the claims describe; their role is that of their groups, whatever their name.

    Raises: UnauthorizedError when they name nobody, or somebody who is not let in.
    """
    name = claims.get(settings.user_claim)
    if not isinstance(name, str) or not name:
        raise UnauthorizedError(f"{settings.shown} names no user: the claim {settings.user_claim} is not there")
    if settings.user_claim == "email" and claims.get("email_verified") is not True:
        raise UnauthorizedError(f"{settings.shown} has not verified the address")
    groups = _texts(claims.get(settings.groups_claim))
    if settings.allowed_groups and groups.isdisjoint(settings.allowed_groups):
        raise UnauthorizedError(f"{settings.shown} names no group of yours that is let in here")
    if name in SYSTEM_NAMES | {login_name()}:
        raise UnauthorizedError("your name is that of who runs this server or its machine")
    role = max((settings.roles[group] for group in groups & settings.roles.keys()), key=RANK.index, default=Role.USER)
    accounts = _texts(claims.get(settings.accounts_claim)) if settings.accounts_claim else frozenset()
    if not LOGIN_NAME.fullmatch(name):
        raise UnauthorizedError(f"the claim {settings.user_claim} is no login name")
    somebody = person(name)
    return Principal(
        somebody.kind,
        name,
        role,
        frozenset(Scope) if role is Role.ADMIN else PERSON_SCOPES,
        user=name,
        accounts=frozenset(sorted(accounts)[:ACCOUNTS_MAX]),
    )


def check_no_collision(session: Session, somebody: Principal, now_ns: int) -> None:
    """Refuse a name that a token of this server gives more rights than the provider does.

    Otherwise whoever can choose a name at the provider could list and revoke an administrator's tokens.
    Raises: UnauthorizedError.
    """
    for token in session.tokens.find(somebody):
        is_of_provider = token.created_by.startswith(CREATED_BY)
        if token.refusal(now_ns) is None and not is_of_provider and _outranks(token.principal, somebody):
            raise UnauthorizedError("your name is that of somebody with more rights on this server")


def _outranks(one: Principal, other: Principal) -> bool:
    return RANK.index(one.role) > RANK.index(other.role) or (Scope.ADMIN in one.scopes - other.scopes)


def _texts(value: object) -> frozenset[str]:
    """Return the texts of a claim: one, or a list."""
    parts = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return frozenset(part for part in parts if isinstance(part, str) and 0 < len(part) <= 200)
