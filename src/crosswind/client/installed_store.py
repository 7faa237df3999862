"""The store of an installation, as its settings name it."""

from crosswind.data.store.store import Store
from crosswind.settings import Settings


def open_store(settings: Settings) -> Store:
    """Open the store with its folder, its catalog and its lake, wherever they are. Raises: as `Store.open`."""
    return Store.open(settings.home, database=settings.database, lake=settings.lake)


def open_checked(settings: Settings) -> Store:
    """Open the store for work that writes, once a lake in an object store takes, returns and removes an object.

    Raises: as `Store.open`; UnavailableError, ConflictError naming what is wrong with the lake.
    """
    store = open_store(settings)
    try:
        if settings.lake is not None:
            store.lake.storage.check()
    except BaseException:
        store.close()
        raise
    return store
