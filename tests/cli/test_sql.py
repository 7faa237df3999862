"""`crosswind sql`: what it prints, and how it refuses."""

import io
import json
from pathlib import Path

import pytest
from tests.api.two_users import fill

from crosswind.cli.main import main
from crosswind.data.store.store import Store


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("two") / "store"
    with Store.open(home) as store:
        fill(store)
    return home


@pytest.fixture(autouse=True)
def here(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSWIND_HOME", str(two))
    monkeypatch.delenv("CROSSWIND_SERVER", raising=False)


def test_rows_are_a_table_and_a_line_says_that_there_are_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "select user, count(*) as runs from runs group by all order by user", "--limit", "1"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[:2] == ["user  runs", "ann     26"]
    assert "there are more than 1 rows: --limit" in printed.err


def test_control_characters_of_names_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "select chr(27) || '[31mred' as name"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_a_statement_comes_from_standard_input_or_a_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("select 1 as one"))
    assert main(["sql", "-", "--csv"]) == 0
    assert capsys.readouterr().out == "one\n1\n"
    (tmp_path / "two.sql").write_text("select ? as two")
    assert main(["sql", "--file", str(tmp_path / "two.sql"), "--parameter", "x", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [["x"]]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["sql"], 2, "query: missing, expected one SELECT"),
        (["sql", "select nothing from runs"], 2, 'Referenced column "nothing" not found'),
        (["sql", "select duration_second from step"], 2, "Near to it: "),
        (["sql", "--tables", "nope"], 2, "table 'nope' is unknown, expected one of runs, ranks"),
        (["sql", "select 1", "--limit", "20000"], 2, "limit 20000: expected 1 to 10000 rows"),
        (["sql", "--file", "/nowhere/x.sql"], 75, "--file /nowhere/x.sql: cannot be read"),
    ],
)
def test_what_cannot_be_asked_is_said(
    capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str
) -> None:
    assert main(words) == code
    assert said in capsys.readouterr().err
