import json
from pathlib import Path

import pytest
from tests.cli.asking import Ask, asking
from tests.serving import answering

from crosswind.data.schema.access import Role, Scope, this_person
from crosswind.data.store.store import Store


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    for name in (
        "CROSSWIND_SPOOL",
        "CROSSWIND_DATABASE",
        "CROSSWIND_TOKEN",
        "CROSSWIND_TOKEN_FILE",
        "CROSSWIND_SERVER",
    ):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


@pytest.fixture
def ask(home: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    return asking(capsys)


def test_a_token_is_printed_once_listed_and_revoked(ask: Ask, home: Path) -> None:
    code, secret, said = ask("token", "create", "prometheus", "--role", "support", "--days", "2")
    assert (code, secret.startswith("cw_"), secret.count("\n")) == (0, True, 1)
    assert "of service prometheus holds until" in said
    token_id = said.split()[2]
    code, listed, _ = ask("token", "list")
    assert (code, secret.strip() in listed) == (0, False)
    assert all(word in listed for word in (token_id, "service prometheus", "support", "read", "program", "holds"))
    code, said, _ = ask("token", "revoke", token_id)
    assert (code, "are revoked" in said) == (0, True)
    assert "was revoked" in ask("token", "list")[1]
    assert json.loads(ask("token", "list", "--json")[1])[0]["revoked_ns"] > 0


def test_a_token_stands_for_what_was_asked(ask: Ask, home: Path) -> None:
    words = ("--kind", "job", "--system", "lab", "--user", "anna", "--account", "physics", "--scope", "read")
    code, said, _ = ask("token", "create", "7", *words, "--scope", "tune", "--json")
    token = json.loads(said)["token"]
    assert code == 0
    with Store.open(home) as store, store.catalog.read() as session:
        principal = session.tokens.get(token["token_id"]).principal
    assert (principal.kind, principal.name, principal.system, principal.user) == ("job", "7", "lab", "anna")
    assert (principal.accounts, principal.scopes, principal.role) == (
        frozenset({"physics"}),
        {Scope.READ, Scope.TUNE},
        Role.USER,
    )


def test_a_link_names_the_server_that_browsers_reach(ask: Ask, home: Path) -> None:
    code, link, said = ask("token", "link")
    assert (code, link.startswith("http://localhost:8321/login?link=cw_")) == (0, True)
    assert f"logs {this_person()} in once" in said
    link = ask("token", "link", "anna", "--url", "https://portal.example/node/n1/8321/")[1]
    assert link.startswith("https://portal.example/node/n1/8321/login?link=cw_")
    assert json.loads(ask("token", "link", "anna", "--json")[1])["token"]["principal"]["user"] == "anna"


def test_tokens_of_a_server_are_managed_over_http(ask: Ask, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(home) as url:
        secret = ask("token", "create", "anna", "--kind", "person", "--server", url)[1].strip()
        link = ask("token", "link", "anna", "--server", url)[1]
        assert link.startswith(f"{url}login?link=cw_")
        [token, _] = json.loads(ask("token", "list", "--server", url, "--json")[1])
        monkeypatch.setenv("CROSSWIND_TOKEN", secret)  # now as anna
        code, _, said = ask("token", "create", "ben", "--kind", "person", "--server", url)
        assert (code, "creates tokens for themselves" in said) == (2, True)
        assert ask("token", "create", "anna", "--kind", "person", "--server", url)[0] == 0
        assert ask("token", "revoke", token["token_id"], "--server", url)[0] == 0
        code, _, said = ask("token", "list", "--server", url)
        assert (code, "the token was revoked" in said) == (2, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("create",), "expected create NAME | list | revoke ID | link [NAME]"),
        (("make", "x"), "expected create NAME"),
        (("revoke", "nope"), "token 'nope' is not in the catalog"),
        (("create", "x", "--days", "0"), "expected more than 0"),
        (("create", "x", "--days", "nan"), "expected more than 0"),
        (("create", "7", "--kind", "job"), "expected its system"),
    ],
)
def test_what_makes_no_sense_is_refused(ask: Ask, home: Path, words: tuple[str, ...], message: str) -> None:
    code, said, complaint = ask("token", *words)
    assert (code, said, message in complaint) == (2, "", True)


def test_without_tokens_the_list_says_how_to_make_one(ask: Ask, home: Path) -> None:
    assert ask("token", "list")[1] == "There are no tokens: crosswind token create NAME makes one.\n"
