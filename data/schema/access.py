"""Who asks, and which rows they may see."""

from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    """What a token allows; `admin` includes the others."""

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


@dataclass(frozen=True)
class RowRule:
    """The rows that a principal may see: all, or those of these users, accounts and jobs besides shared ones.

    A job is named by its system and id.
    """

    sees_all: bool = False
    users: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    jobs: frozenset[tuple[str, str]] = frozenset()


ALL_ROWS = RowRule(sees_all=True)


@dataclass(frozen=True)
class Principal:
    """Who asks: a person, a job, a node's agent or a service.

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
    token_id: str | None = None

    def allows(self, scope: Scope) -> bool:
        """Return whether the principal may do what needs this scope."""
        return scope in self.scopes or Scope.ADMIN in self.scopes

    @property
    def row_rule(self) -> RowRule:
        """The rows that it may see."""
        if self.role is not Role.USER:
            return ALL_ROWS
        users = frozenset({self.user} if self.user else ())
        jobs = {(self.system, self.name)} if self.system and self.kind is PrincipalKind.JOB else ()
        return RowRule(users=users, accounts=self.accounts, jobs=frozenset(jobs))


OWNER = Principal(PrincipalKind.PERSON, "owner", Role.ADMIN, frozenset(Scope))
"""Who runs the server, or works on the store itself."""
