"""Answers of a verb, called in this process."""

import os
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from unittest.mock import patch

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


def answered(environment: Mapping[str, str], *words: str) -> tuple[int, str, str]:
    """Return the same of a verb that is called once in this process, with this environment instead of its own."""
    with (
        patch.dict(os.environ, environment, clear=True),
        redirect_stdout(StringIO()) as said,
        redirect_stderr(StringIO()) as complained,
    ):
        try:
            code = main(list(words))
        except SystemExit as exit_:  # argparse
            code = int(exit_.code or 0)
    return code, said.getvalue(), complained.getvalue()
