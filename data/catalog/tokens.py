"""Tokens in the catalog. Only a hash of each secret is stored.

A secret has 256 random bits. It cannot be guessed from its hash, so SHA-256 is enough: a slow hash protects
passwords, which people choose from few.
"""

import hashlib
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection, Select, and_, delete, select, update

from crosswind.data.catalog import rows, tables
from crosswind.data.catalog.audit import Audit
from crosswind.data.catalog.keyset import part_of
from crosswind.data.catalog.live.notes import Notes
from crosswind.data.schema.access import Principal, PrincipalKind, Role, Scope, TokenUse
from crosswind.data.schema.answers.tokens import IssuedToken, Token
from crosswind.data.schema.errors import ConflictError, InvalidInputError, NotFoundError
from crosswind.data.schema.part import Part
from crosswind.data.schema.run import new_ulid

PREFIX = "cw_"  # by which people and secret scanners recognise a token
SECRET_BYTES = 32
NAME_CHARACTERS = 200
SECONDS_MAX = 10 * 366 * 86_400
KEPT_NS = 30 * 86_400 * 1_000_000_000  # how long an expired token is still listed
CREATE, REVOKE = "create token", "revoke token"  # acts of the audit trail
SESSION_ACTS = {CREATE: "log in", REVOKE: "log out"}
TABLE = tables.tokens
EVERY = Part(limit=2**31)
IDENTITY = TABLE.c.kind, TABLE.c.name, TABLE.c.user, TABLE.c.system  # as Principal.identity


def digest_of(secret: str) -> str:
    """Return the hash by which a secret is stored."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def not_in_catalog(token_id: str) -> NotFoundError:
    """Return the error for a token that is not there, or is to look as if it were not."""
    return NotFoundError(f"token {token_id!r:.80} is not in the catalog")


class Tokens:
    """Tokens, over one connection."""

    def __init__(
        self, connection: Connection, notes: Notes | None = None, clock: Callable[[], int] = time.time_ns
    ) -> None:
        self._connection = connection
        self._notes = notes or Notes()
        self._clock = clock

    def issue(
        self,
        principal: Principal,
        seconds: float,
        *,
        created_by: str,
        use: TokenUse = TokenUse.PROGRAM,
        parent_id: str | None = None,
    ) -> IssuedToken:
        """Store a new token that holds for so long, but not longer than its parent.

        Raises: InvalidInputError naming the field; ConflictError when the parent does not hold any more.
        """
        _check(principal, seconds)
        now_ns = self._clock()
        expires_ns = min(now_ns + round(seconds * 1e9), self._end_of(parent_id, now_ns))
        token = Token(
            token_id=new_ulid(),
            principal=principal,
            use=use,
            created_by=created_by,
            created_ns=now_ns,
            expires_ns=expires_ns,
            parent_id=parent_id,
        )
        self._connection.execute(delete(TABLE).where(TABLE.c.expires_ns < now_ns - KEPT_NS))
        secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        rows.add(self._connection, TABLE, _row(token) | {"digest": digest_of(secret)})
        self._note(CREATE, token, created_by)
        return IssuedToken(secret=secret, token=token)

    def of_digest(self, digest: str) -> Token | None:
        """Return the token whose secret has this hash, also one that holds no more; None where there is none."""
        row = rows.fetch(self._connection, TABLE, digest=digest)
        return None if row is None else _token(row)

    def get(self, token_id: str) -> Token:
        """Return one token. Raises: NotFoundError."""
        row = rows.fetch(self._connection, TABLE, token_id=token_id)
        if row is None:
            raise not_in_catalog(token_id)
        return _token(row)

    def find(self, owner: Principal | None = None, part: Part = EVERY) -> list[Token]:
        """Return a part of the tokens in the order of their making: of all, or of those of one principal."""
        query = part_of(select(TABLE), part, TABLE.c.token_id)
        if owner is not None:
            is_own = (
                column.is_not_distinct_from(value) for column, value in zip(IDENTITY, owner.identity, strict=True)
            )
            query = query.where(and_(*is_own))
        return self._tokens(query)

    def revoke(self, token_id: str, *, by: str) -> Token:
        """End a token and those that were made with it; a second time changes nothing. Raises: NotFoundError."""
        self._connection.execute(select(TABLE.c.token_id).where(TABLE.c.token_id == token_id).with_for_update())
        self._revoke([token_id])
        self.revoke_made_with(token_id)
        token = self.get(token_id)
        self._note(REVOKE, token, by)
        return token

    def revoke_made_with(self, parent_id: str) -> None:
        """End the tokens that were made with this one, and those that were made with them."""
        children = [token.token_id for token in self._tokens(select(TABLE).where(TABLE.c.parent_id == parent_id))]
        for child in children:
            self.revoke_made_with(child)
        self._revoke(children)

    def claim(self, digest: str) -> Token:
        """End a link's token and return it, once. Raises: NotFoundError where it is none, or was used or expired."""
        self._connection.execute(select(TABLE.c.token_id).where(TABLE.c.digest == digest).with_for_update())
        token = self.of_digest(digest)
        if token is None or token.use is not TokenUse.LINK or token.refusal(self._clock()):
            raise NotFoundError("this link is none of this server, was used already, or has expired")
        self._revoke([token.token_id])
        return token

    def note_use(self, used_ns: Mapping[str, int]) -> None:
        """Note the last use of tokens, by their ids."""
        for token_id, moment_ns in used_ns.items():
            rows.change(self._connection, TABLE, {"token_id": token_id}, used_ns=moment_ns)

    def _note(self, act: str, token: Token, who: str) -> None:
        """Keep an act in the audit trail: logins and logouts under their own names, tokens of every job not at all."""
        facts = {"of": str(token.principal), "role": token.principal.role, "use": token.use}
        facts["scopes"] = " ".join(sorted(token.principal.scopes))
        if token.use is TokenUse.SESSION:
            act, who, facts["by"] = SESSION_ACTS[act], str(token.principal), who
        elif token.principal.kind is PrincipalKind.JOB:
            return
        Audit(self._connection).add(who, act, token.token_id, **facts)

    def _end_of(self, parent_id: str | None, now_ns: int) -> int:
        if parent_id is None:
            return now_ns + SECONDS_MAX * 1_000_000_000
        self._connection.execute(select(TABLE.c.token_id).where(TABLE.c.token_id == parent_id).with_for_update())
        parent = self.get(parent_id)
        if refusal := parent.refusal(now_ns):
            raise ConflictError(f"token {parent_id}: {refusal}")
        return parent.expires_ns

    def _revoke(self, token_ids: list[str]) -> None:
        where = and_(rows.among(self._connection, TABLE.c.token_id, token_ids), TABLE.c.revoked_ns.is_(None))
        self._connection.execute(update(TABLE).where(where).values(revoked_ns=self._clock()))
        self._notes.tokens_ended(token_ids)

    def _tokens(self, query: Select[Any]) -> list[Token]:
        return [_token(dict(row)) for row in self._connection.execute(query).mappings()]


def _check(principal: Principal, seconds: float) -> None:
    """Refuse what no token can stand for. Raises: InvalidInputError."""
    if not 0 < seconds <= SECONDS_MAX:
        raise InvalidInputError(f"token for {seconds:g} s: expected more than 0 and at most {SECONDS_MAX} s")
    for name, text in (("name", principal.name), ("user", principal.user), ("system", principal.system)):
        if text is not None and not (0 < len(text) <= NAME_CHARACTERS and text.isprintable()):
            raise InvalidInputError(f"{name} {text!r:.80}: expected 1 to {NAME_CHARACTERS} printable characters")
    if not principal.scopes:
        raise InvalidInputError(f"scopes: expected one at least of {', '.join(Scope)}")
    if principal.kind is PrincipalKind.JOB and not principal.system:
        raise InvalidInputError(f"job {principal.name!r}: expected its system")


def _row(token: Token) -> dict[str, Any]:
    principal = token.principal
    facts = {name: getattr(token, name) for name in ("token_id", "use", "created_by", "created_ns", "expires_ns")}
    grants = {"role": principal.role, "scopes": sorted(principal.scopes), "accounts": sorted(principal.accounts)}
    names = {column.name: value for column, value in zip(IDENTITY, principal.identity, strict=True)}
    return {**facts, "parent_id": token.parent_id, **names, **grants}


def _token(row: Mapping[str, Any]) -> Token:
    principal = Principal(
        kind=PrincipalKind(row["kind"]),
        name=row["name"],
        role=Role(row["role"]),
        scopes=frozenset(map(Scope, row["scopes"])),
        user=row["user"],
        accounts=frozenset(row["accounts"]),
        system=row["system"],
    )
    times = {name: row[name] for name in ("created_ns", "expires_ns", "revoked_ns", "used_ns")}
    return Token(
        token_id=row["token_id"],
        principal=principal,
        use=TokenUse(row["use"]),
        created_by=row["created_by"],
        parent_id=row["parent_id"],
        **times,
    )
