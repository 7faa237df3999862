"""Incoming segments: `crosswind run` leaves them in the store's folder, and they are stored when it is next read."""

from collections.abc import Callable
from pathlib import Path

from crosswind.data.schema.errors import ProjectError
from crosswind.data.schema.lake_address import LakeAddress
from crosswind.data.schema.paths import incoming_directory, is_incoming
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import load_spool


def store_incoming(
    home: Path, database: str | None = None, lake: Callable[[], LakeAddress | None] = lambda: None
) -> list[str]:
    """Store what waits in the store's folder. Return its problems; it keeps waiting where nothing can be stored."""
    if not is_incoming(home):
        return []
    try:
        with Store.open(home, database=database, lake=lake()) as store:
            return take_incoming(store)
    except ProjectError as error:
        return [f"what runs have left in {incoming_directory(home)} waits there: {error}"]


def take_incoming(store: Store) -> list[str]:
    """Store what waits in the folder of an open store. Return its problems. Raises: UnavailableError."""
    return load_spool(store, incoming_directory(store.home)).problems if is_incoming(store.home) else []
