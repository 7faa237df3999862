from collections.abc import Callable
from pathlib import Path

import pytest
from tests.ingest.probe.adapters.launched import THIS_PYTHON, Launch, forked
from tests.ingest.probe.adapters.trained import Trained, came_of

Train = Callable[..., Trained]


@pytest.fixture(scope="session")
def train(tmp_path_factory: pytest.TempPathFactory) -> Train:
    """Trains by a program of `programs/`, each with its arguments once."""

    done: dict[tuple[str, ...], Trained] = {}

    def once(*command: str, ranks: int = 2, python: Path = THIS_PYTHON, launch: Launch = forked) -> Trained:
        if command not in done:
            folder = tmp_path_factory.mktemp("training")
            done[command] = came_of(folder, launch(folder, command, ranks=ranks, python=python))
        return done[command]

    return once
