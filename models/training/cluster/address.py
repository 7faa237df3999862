"""The store as the workers of a cluster open it: by its address, with the password from their own environment."""

import os
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import URL, make_url

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.store.store import Store

DATABASE = "CROSSWIND_DATABASE"


@dataclass(frozen=True)
class StoreAddress:
    """The folder of a store, and the URL of its catalog, without a password, where that is not in the folder."""

    home: Path
    database: str | None = None

    @classmethod
    def of(cls, store: Store) -> "StoreAddress":
        """Return the address of an open store."""
        url = store.catalog.engine.url
        return cls(store.home.resolve(), None if url.get_backend_name() == "sqlite" else _shown(url))

    def open(self) -> Store:
        """Open it on a worker. Raises: UnavailableError where the worker does not see it."""
        if self.database is None:
            if not (self.home / "catalog.sqlite").is_file():
                raise UnavailableError(f"a worker sees no store at {self.home}: expected a folder that all nodes share")
            return Store.open(self.home)
        own = os.environ.get(DATABASE, "")
        if not own or _shown(own) != self.database:
            seen = _shown(own) if own else "not set"
            raise UnavailableError(f"{DATABASE} of a worker is {seen}, expected {self.database} with its password")
        return Store.open(self.home, database=own)


def _shown(database: str | URL) -> str:
    """Return a URL without driver, password and options, in any of which a secret may be."""
    url = make_url(database)
    return URL.create(url.get_backend_name(), url.username, None, url.host, url.port, url.database).render_as_string()
