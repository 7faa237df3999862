from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.ingest.probe.adapters.launched import THIS_PYTHON, Launch, forked
from tests.ingest.probe.adapters.trained import Trained, came_of
from tests.ingest.torch_forks import TorchForks, torch_forks

Train = Callable[..., Trained]


@pytest.fixture(scope="session")
def forks() -> Iterator[TorchForks]:
    """A process that has imported PyTorch, for all trainings."""
    with torch_forks() as started:
        yield started


@pytest.fixture(scope="session")
def train(tmp_path_factory: pytest.TempPathFactory, forks: TorchForks) -> Train:
    """Trains by a program of `programs/`, each with its arguments once: in forks, or as `launch` does it."""

    done: dict[tuple[str, ...], Trained] = {}

    def once(*command: str, ranks: int = 2, python: Path = THIS_PYTHON, launch: Launch | None = None) -> Trained:
        if command not in done:
            folder, begun = tmp_path_factory.mktemp("training"), launch or partial(forked, forks)
            done[command] = came_of(folder, begun(folder, command, ranks=ranks, python=python))
        return done[command]

    return once
