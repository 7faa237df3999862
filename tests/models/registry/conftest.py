from collections.abc import Iterator
from pathlib import Path

import pytest

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    with Store.open(tmp_path / "home") as opened:
        yield opened


@pytest.fixture
def either_store(catalog: Catalog, tmp_path: Path) -> Store:
    """An empty store, once over each database."""
    return Store(tmp_path / "home", catalog)
