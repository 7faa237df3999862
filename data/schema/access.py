"""Principals: their scopes, the rows that they may see, and what is noted of them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, lru_cache

from crosswind.data.schema.login import login_name

AUDIT_KEPT_DAYS = 365


class Scope(StrEnum):
    """A kind of request that a token allows; `admin` includes the others."""

    READ = "read"
    INGEST = "ingest"
    TUNE = "tune"
    ADMIN = "admin"


class Role(StrEnum):
    """`user` sees their own rows, those of their accounts and shared ones; `support` and `admin` see all."""

    USER = "user"
    SUPPORT = "support"
    ADMIN = "admin"


class PrincipalKind(StrEnum):
    """Whoever can ask a server."""

    PERSON = "person"
    JOB = "job"
    AGENT = "agent"
    SERVICE = "service"


class TokenUse(StrEnum):
    """Ways in which a token is presented: by programs, by a browser that has logged in, or once, to log in."""

    PROGRAM = "program"
    SESSION = "session"
    LINK = "link"


@dataclass(frozen=True)
class RowRule:
    """The rows that a principal may see: all, or those of these users, accounts and jobs besides shared ones.

    A job is named by its system and id. What is written under the rule is its user's; with `nodes`, samples are of
    these nodes alone. Shared rows may be seen by everybody, and changed by those whose they are or who `changes_all`.
    """

    sees_all: bool = False
    changes_all: bool = False
    users: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    jobs: frozenset[tuple[str, str]] = frozenset()
    nodes: frozenset[str] = frozenset()

    @property
    def user(self) -> str | None:
        """The one user; None without one, or with several."""
        return next(iter(self.users)) if len(self.users) == 1 else None

    @property
    def account(self) -> str | None:
        """The one account; None without one, or with several."""
        return next(iter(self.accounts)) if len(self.accounts) == 1 else None


ALL_ROWS = RowRule(sees_all=True, changes_all=True)


@dataclass(frozen=True)
class Principal:
    """One who asks: a person, a job, a node's agent or a service.

    `name` is the login name, job id, host name or what the administrator called the service. A job belongs to `user`
    and `account` and ran on `system`.
    """

    kind: PrincipalKind
    name: str
    role: Role = Role.USER
    scopes: frozenset[Scope] = frozenset({Scope.READ})
    user: str | None = None
    accounts: frozenset[str] = frozenset()
    system: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def allows(self, scope: Scope) -> bool:
        """Return whether the principal may do what needs this scope."""
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def is_same(self, other: "Principal") -> bool:
        """Return whether both are the same person, job, agent or service, whatever they may do."""
        return self.identity == other.identity

    @property
    def identity(self) -> tuple[str, str, str | None, str | None]:
        """Return kind, name, user and system, which name the principal."""
        return self.kind, self.name, self.user, self.system

    @cached_property
    def mark(self) -> str:
        """A short text that is the same for all requests of this principal, whichever token they bring."""
        return hashlib.sha256(repr(self.identity).encode()).hexdigest()[:16]

    def covers(self, other: "Principal") -> bool:
        """Return whether a token for `other` would give nothing beyond what this principal has."""
        if Scope.ADMIN in self.scopes:
            return True
        same = replace(other, scopes=self.scopes) == self
        return same and other.scopes <= self.scopes

    @property
    def row_rule(self) -> RowRule:
        """The rows that it may see."""
        users = frozenset({self.user} if self.user else ())
        if self.role is not Role.USER:
            return RowRule(sees_all=True, changes_all=self.role is Role.ADMIN, users=users)
        jobs = {(self.system, self.name)} if self.system and self.kind is PrincipalKind.JOB else ()
        return RowRule(users=users, accounts=self.accounts, jobs=frozenset(jobs))

    @property
    def write_rule(self) -> RowRule:
        """The rows that it may store: its own; all where it is an agent or a service that is bound to nobody.

        An agent of a system is bound to the node that it is called after.
        """
        if self.kind is PrincipalKind.AGENT and self.system:
            return replace(ALL_ROWS, nodes=frozenset({self.name}))
        is_bound = self.user or self.accounts or self.kind in (PrincipalKind.PERSON, PrincipalKind.JOB)
        return self.row_rule if is_bound else ALL_ROWS


NOBODY = Principal(PrincipalKind.SERVICE, "nobody", scopes=frozenset())
"""One who has not been identified: sees shared rows alone."""
OWNER = Principal(PrincipalKind.PERSON, "owner", Role.ADMIN, frozenset(Scope))
"""Who runs the server, or works on the store itself."""


@lru_cache(8)
def owner(uid: int | None = None) -> Principal:
    """Return the owner by login name: who runs this process, or the user with this uid."""
    return replace(OWNER, name=login_name(uid))


@dataclass(frozen=True)
class AuditEntry:
    """One act that is kept: by whom, when in ns UTC, what it was, and on what."""

    entry_id: str
    at_ns: int
    who: str
    act: str
    subject: str
    details: Mapping[str, str | int | bool | None]


def this_person() -> str:
    """Return how the audit trail names this process's user."""
    return f"{PrincipalKind.PERSON} {login_name()}"
