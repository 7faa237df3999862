"""The reading of the docs' examples, and every command of theirs as the command line takes it."""

import argparse
import re
import shlex
from pathlib import Path

import pytest
from tests.docs.examples import ROOT, Example, Shell, commands_in, examples_in, shape, write_files

from crosswind.cli.main import VERBS, build_parser

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PLACEHOLDER = re.compile(r"\.\.\.|…")


def test_examples_have_their_output_up_to_the_next_command(tmp_path: Path) -> None:
    document = tmp_path / "x.md"
    document.write_text("```\n$ one --a     # why\nfirst\n...\n$ two\n```\n\n```python\n# a/b.py\nprint(1)\n```\n")
    assert list(examples_in(document)) == [Example("one --a", "first\n...", 2), Example("two", "", 5)]
    write_files(document, tmp_path)
    assert (tmp_path / "a" / "b.py").read_text() == "print(1)\n"


@pytest.mark.parametrize(
    ("documented", "printed", "is_same"),
    [
        ("took 3 s", "took 12.5 ms", True),
        ("took 3 s", "lasted 3 s", False),
        ("a\n...\nz", "a\nb\nc\nz", True),
        ("a\n...\nz", "a\nz", True),
        ("a\nz", "a\nb\nz", False),
        ("a", "a\nmore", False),
        ("run 01KTXGEVA8KM9P2SYV77C2P8ZV: ok", "run 01M00000000000000000000000: ok", True),
        ("  x  ████░░ 3.1%", "  x  █ 99 %", False),
        ("  x  ████░░ 3.1%", "  x       █ 99%", True),
        ("at 2026-01-02 03:04:05 UTC", "at 2027-11-12 13:14:15 UTC", True),
        ("of 3 min 12 s", "of 4 h 2 min", True),
        ("", "", True),
        ("", "x", False),
    ],
)
def test_numbers_times_and_ids_may_differ_and_words_may_not(documented: str, printed: str, is_same: bool) -> None:
    assert Example("x", documented, 1).matches(printed) == is_same


def test_a_shell_of_a_newcomer_has_an_own_home(tmp_path: Path) -> None:
    shell = Shell(tmp_path, {"CROSSWIND_SYSTEM": "lab"})
    assert shell.ask(Example("echo $HOME $CROSSWIND_SYSTEM$CROSSWIND_HOME; crosswind --version", "", 1)) == (
        f"{tmp_path} lab\ncrosswind 0.1.0\n"
    )
    assert shape("a\n\n b ") == "a\nb\n"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_of_the_docs_is_one_that_the_command_line_takes(document: Path) -> None:
    for number, line in commands_in(document):
        words = shlex.split(line.replace("[", "").replace("]", ""), comments=True)[1:]
        verb = words[0]
        assert verb in {candidate.name for candidate in VERBS} or verb.startswith("-"), (
            f"{document.name}:{number}: {line}"
        )
        wrong = unknown_options(build_parser(verb), words)
        assert not wrong, f"{document.name}:{number}: {line}: no option {', '.join(wrong)}"


def unknown_options(parser: argparse.ArgumentParser, words: list[str]) -> list[str]:
    """Return the options that no parser on the way has."""
    options: set[str] = set()
    for word in words:
        options |= set(parser._option_string_actions)
        subparsers = next((a for a in parser._actions if isinstance(a, argparse._SubParsersAction)), None)
        if subparsers and word in subparsers.choices:
            parser = subparsers.choices[word]
    options |= set(parser._option_string_actions)
    ours = words[: words.index("--")] if "--" in words else words
    return [word for word in ours if word.startswith("--") and word.partition("=")[0] not in options]
