"""The examples of docs/sql.md, run over the store that they are of; and those of the page."""

import shlex
from pathlib import Path

import pytest
from tests.api.two_users import fill
from tests.docs.examples import ROOT, Shell, examples_in

from crosswind.client.local import Local
from crosswind.dashboards.pages.sql import EXAMPLES
from crosswind.data.store.store import Store

DOCUMENT = ROOT / "docs" / "sql.md"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("sql") / "store"
    with Store.open(home) as store:
        fill(store)
    return home


def test_the_examples_print_what_the_document_says(home: Path, tmp_path: Path) -> None:
    shell = Shell(tmp_path, {"CROSSWIND_HOME": str(home)})
    examples = list(examples_in(DOCUMENT))
    assert len(examples) > 5
    for example in examples:
        assert shlex.split(example.command)[:2] == ["crosswind", "sql"]
        printed = shell.ask(example)
        assert example.matches(printed), f"{DOCUMENT.name}:{example.number}: {example.command}\n{printed}"


@pytest.mark.parametrize("title", EXAMPLES)
def test_every_example_of_the_page_is_answered(home: Path, title: str) -> None:
    with Store.open(home) as store:
        answer = Local(store).sql(EXAMPLES[title])
    assert answer.columns
