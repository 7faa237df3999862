import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.tokens import PREFIX, SECONDS_MAX, digest_of
from crosswind.data.schema.access import OWNER, Principal, PrincipalKind, Role, Scope, TokenUse
from crosswind.data.schema.answers.tokens import IssuedToken, Token
from crosswind.data.schema.errors import ConflictError, InvalidInputError, NotFoundError
from crosswind.data.schema.part import Part

ANNA = Principal(PrincipalKind.PERSON, "anna", user="anna", accounts=frozenset({"physics", "chemistry"}))
HOUR = 3600.0


def issued(catalog: Catalog, principal: Principal = ANNA, parent_id: str | None = None) -> IssuedToken:
    with catalog.write() as session:
        return session.tokens.issue(principal, HOUR, created_by="owner", parent_id=parent_id)


def stored(catalog: Catalog, token_id: str) -> Token:
    with catalog.read() as session:
        return session.tokens.get(token_id)


def test_a_token_is_read_back_by_the_hash_of_its_secret_alone(catalog: Catalog) -> None:
    made = issued(catalog)
    assert made.secret.startswith(PREFIX)
    assert len(made.secret) == len(PREFIX) + 43  # 32 octets in base64
    with catalog.read() as session:
        assert session.tokens.of_digest(digest_of(made.secret)) == made.token
        assert session.tokens.of_digest(made.secret) is None
        assert session.tokens.of_digest(digest_of(made.secret + "x")) is None
    assert made.token.principal == ANNA
    assert made.secret not in repr(stored(catalog, made.token.token_id))
    assert issued(catalog).secret != made.secret


def test_a_token_ends_with_its_time_or_by_revocation(catalog: Catalog) -> None:
    token = issued(catalog).token
    assert token.refusal(token.expires_ns - 1) is None
    assert token.refusal(token.expires_ns) == "the token has expired"
    with catalog.write() as session:
        revoked = session.tokens.revoke(token.token_id, by="owner")
    assert revoked.refusal(token.created_ns) == "the token was revoked"
    with catalog.write() as session:
        assert session.tokens.revoke(token.token_id, by="owner") == revoked  # a second time changes nothing


def test_what_was_made_with_a_token_ends_with_it_and_nothing_else(catalog: Catalog) -> None:
    parent, other = issued(catalog).token, issued(catalog).token
    child = issued(catalog, parent_id=parent.token_id).token
    grandchild = issued(catalog, parent_id=child.token_id).token
    with catalog.write() as session:
        session.tokens.revoke(parent.token_id, by="owner")
    assert all(stored(catalog, one.token_id).revoked_ns for one in (parent, child, grandchild))
    assert stored(catalog, other.token_id).revoked_ns is None
    with pytest.raises(ConflictError, match="was revoked"):
        issued(catalog, parent_id=parent.token_id)
    with pytest.raises(NotFoundError, match="'nope'"):
        issued(catalog, parent_id="nope")


def test_no_token_outlives_the_one_that_made_it(catalog: Catalog) -> None:
    parent = issued(catalog).token
    with catalog.write() as session:
        child = session.tokens.issue(ANNA, 2 * HOUR, created_by="anna", parent_id=parent.token_id)
    assert child.token.expires_ns == parent.expires_ns


def test_of_many_who_use_a_link_at_once_one_gets_in(catalog: Catalog) -> None:
    with catalog.write() as session:
        link = session.tokens.issue(ANNA, HOUR, created_by="owner", use=TokenUse.LINK)
    outcomes: list[str] = []

    def use() -> None:
        try:
            with catalog.write() as session:
                outcomes.append(session.tokens.claim(digest_of(link.secret)).principal.name)
        except NotFoundError:
            outcomes.append("refused")

    threads = [threading.Thread(target=use) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["anna", *["refused"] * 4]
    program = issued(catalog)
    with catalog.write() as session, pytest.raises(NotFoundError, match="none of this server"):
        session.tokens.claim(digest_of(program.secret))


def test_a_principal_finds_its_own_tokens_alone(catalog: Catalog) -> None:
    mine = issued(catalog).token
    theirs = issued(catalog, replace(ANNA, name="bob", user="bob")).token
    with catalog.read() as session:
        assert session.tokens.find(replace(ANNA, scopes=frozenset(Scope))) == [mine]
        assert session.tokens.find() == [mine, theirs]
        assert session.tokens.find(part=Part(9, after=(mine.token_id,))) == [theirs]


def test_the_last_use_is_noted(catalog: Catalog) -> None:
    token = issued(catalog).token
    with catalog.write() as session:
        session.tokens.note_use({token.token_id: 1_767_323_045_000_000_000})
    assert stored(catalog, token.token_id).used_at == "2026-01-02T03:04:05.000000000Z"


def test_long_expired_tokens_are_forgotten(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = time.time_ns()
    monkeypatch.setattr(catalog, "clock", lambda: now_ns - 40 * 86_400 * 1_000_000_000)
    old = issued(catalog).token
    monkeypatch.undo()
    issued(catalog)
    with pytest.raises(NotFoundError, match=old.token_id):
        stored(catalog, old.token_id)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda p: replace(p, name=""), "name ''"),
        (lambda p: replace(p, name="a" * 201), "1 to 200"),
        (lambda p: replace(p, user="a\nb"), "user 'a"),
        (lambda p: replace(p, scopes=frozenset()), "read, ingest, tune, admin"),
        (lambda p: replace(p, kind=PrincipalKind.JOB), "expected its system"),
    ],
)
def test_what_no_token_can_stand_for_is_refused(
    catalog: Catalog, change: Callable[[Principal], Principal], expected: str
) -> None:
    with pytest.raises(InvalidInputError, match=expected):
        issued(catalog, change(ANNA))


@pytest.mark.parametrize("seconds", [0, -1, SECONDS_MAX + 1, float("nan"), float("inf")])
def test_a_time_that_makes_no_sense_is_refused(catalog: Catalog, seconds: float) -> None:
    with catalog.write() as session, pytest.raises(InvalidInputError, match="expected more than 0"):
        session.tokens.issue(ANNA, seconds, created_by="owner")


def test_a_principal_covers_what_has_no_more_than_itself() -> None:
    fewer = replace(ANNA, scopes=frozenset({Scope.READ}))
    more = replace(ANNA, scopes=frozenset({Scope.READ, Scope.TUNE}))
    assert more.covers(fewer)
    assert not fewer.covers(more)
    assert not ANNA.covers(replace(ANNA, role=Role.SUPPORT))
    assert not ANNA.covers(replace(ANNA, user="bob"))
    assert not ANNA.covers(replace(ANNA, accounts=ANNA.accounts | {"biology"}))
    assert OWNER.covers(replace(ANNA, role=Role.ADMIN))


def test_making_and_ending_a_token_is_kept_in_the_audit_trail_and_so_is_a_login(catalog: Catalog) -> None:
    token = issued(catalog).token
    with catalog.write() as session:
        session_id = session.tokens.issue(ANNA, HOUR, created_by="x", use=TokenUse.SESSION).token.token_id
        session.tokens.revoke(token.token_id, by="person ben")
        kept = session.audit.find({}, Part(9, descending=True))
    assert [(entry.who, entry.act, entry.subject) for entry in kept] == [
        ("person ben", "revoke token", token.token_id),
        (str(ANNA), "log in", session_id),
        ("owner", "create token", token.token_id),
    ]
    assert kept[1].details["of"] == "person anna"
