"""Answers of a verb, called in this process."""

from collections.abc import Callable

import pytest

from crosswind.cli.main import main

Ask = Callable[..., tuple[int, str, str]]


def asking(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Exit code, and what was printed and complained, by the verb and words that it is called with."""

    def ask(*words: str) -> tuple[int, str, str]:
        try:
            code = main(list(words))
        except SystemExit as exit_:  # argparse
            code = int(exit_.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return ask
