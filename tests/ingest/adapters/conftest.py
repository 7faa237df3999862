from collections.abc import Callable
from pathlib import Path

import pytest
from tests.ingest.adapters.trained import THIS_PYTHON, Trained, trained

Train = Callable[..., Trained]


@pytest.fixture(scope="session")
def train(tmp_path_factory: pytest.TempPathFactory) -> Train:
    """Trains by a program of `programs/`, each with its arguments once."""

    done: dict[tuple[str, ...], Trained] = {}

    def once(program: str, *arguments: str, ranks: int = 2, python: Path = THIS_PYTHON) -> Trained:
        if (program, *arguments) not in done:
            spool = tmp_path_factory.mktemp("training")
            done[program, *arguments] = trained(spool, program, *arguments, ranks=ranks, python=python)
        return done[program, *arguments]

    return once
