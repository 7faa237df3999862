from pathlib import Path

import pytest
from tests.cli.asking import Ask, asking

import crosswind
from crosswind.data.store.store import Store


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CROSSWIND_SERVER", "CROSSWIND_DATABASE", "CROSSWIND_SPOOL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def ask(home: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    return asking(capsys)


def test_bare_it_says_what_to_type_first_and_makes_nothing(ask: Ask, home: Path) -> None:
    code, said, complaint = ask()
    assert (code, complaint) == (0, "")
    assert said.index("crosswind run -- torchrun") < said.index("crosswind explain") < said.index("crosswind doctor")
    assert f"The store is {home}, which is made on first use" in said
    assert not home.exists()


def test_the_version_is_printed(ask: Ask) -> None:
    assert ask("--version") == (0, f"crosswind {crosswind.__version__}\n", "")


def test_the_demos_store_is_pointed_at_where_a_demo_ran(ask: Ask, home: Path) -> None:
    assert "demo's runs" not in ask()[1]
    Store.open(home / "demo").close()
    for words in ((), ("runs",)):
        assert f"The demo's runs are in its own store: export CROSSWIND_HOME={home}/demo" in ask(*words)[1]
