"""One sample store for all tests of the API's description, and one server on it for the examples."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.api.openapi.executing import Executed, execute, sample_client
from tests.api.openapi.sample_store import fill

from crosswind.api.app import create_app
from crosswind.data.store.store import Store


@pytest.fixture(scope="session")
def filled_sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sample store, to be copied."""
    scratch = tmp_path_factory.mktemp("sample")
    fill(scratch / "store", scratch)
    return scratch / "store"


@pytest.fixture(scope="session")
def sample_home(filled_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy that examples change."""
    return Path(shutil.copytree(filled_sample, tmp_path_factory.mktemp("examples") / "store"))


@pytest.fixture(scope="session")
def executed(sample_home: Path) -> dict[tuple[str, str], Executed]:
    """Every example with the answer to it, by operation and name."""
    with sample_client(sample_home) as (client, names):
        return {(done.example.operation, done.example.name): done for done in execute(client, names)}


@pytest.fixture(scope="session")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The description of an application over an empty store."""
    with Store.open(tmp_path_factory.mktemp("empty")) as store:
        return create_app(store).openapi()
