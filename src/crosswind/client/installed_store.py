"""The store of an installation, as its settings name it."""

from crosswind.data.store.store import Store
from crosswind.settings import Settings


def open_store(settings: Settings) -> Store:
    """Open the store with its folder, its catalog and its lake, wherever they are. Raises: as `Store.open`."""
    return Store.open(settings.home, database=settings.database, lake=settings.lake)
