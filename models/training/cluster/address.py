"""The store as the workers of a cluster open it: by its addresses, with the secrets from their own environment."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import URL, make_url

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.lake_address import CACHE, LAKE, LakeAddress
from crosswind.data.schema.paths import store_home
from crosswind.data.store.store import Store

DATABASE = "CROSSWIND_DATABASE"


@dataclass(frozen=True)
class StoreAddress:
    """The folder of a store, and where the parts of it are that are not in the folder, without their secrets."""

    home: Path
    evidence: Path | None  # a path that only this folder has; None where nothing in it is read
    database: str | None = None
    lake: str | None = None

    @classmethod
    def of(cls, store: Store) -> "StoreAddress":
        """Return the address of an open store."""
        url, home = store.catalog.engine.url, store.home.resolve()
        database = None if str(url.database) == str(store.home / "catalog.sqlite") else _shown(url)
        lake = None if store.address is None else str(store.address)
        return cls(home, _evidence(home, database, lake), database, lake)

    def open(self) -> Store:
        """Open it on a worker. Raises: UnavailableError where the worker lacks a part of it, and as `Store.open`."""
        if self.evidence is not None and not self.evidence.exists():
            raise UnavailableError(f"a worker sees no {self.evidence}: expected the home on a file system of all nodes")
        database = _own(DATABASE, self.database, _shown)
        address = _own(LAKE, self.lake, lambda text: str(LakeAddress.of(text)))
        lake = LakeAddress.of(address, os.environ.get(CACHE, "")) if address else None
        return Store.open(store_home(os.environ) if self.evidence is None else self.home, database=database, lake=lake)


def _evidence(home: Path, database: str | None, lake: str | None) -> Path | None:
    if database is None:
        return home / "catalog.sqlite"
    return next((home / "lake").glob("set=*/date=*"), home) if lake is None else None


def _own(variable: str, expected: str | None, shown: Callable[[str], str]) -> str | None:
    """Return the worker's own address, with its secret, of what the store has at an address."""
    if expected is None:
        return None
    own = os.environ.get(variable, "")
    if not own or shown(own) != expected:
        seen = shown(own) if own else "not set"
        raise UnavailableError(f"{variable} of a worker is {seen}, expected {expected} with what it needs to log in")
    return own


def _shown(database: str | URL) -> str:
    """Return a URL without driver, password and options, in any of which a secret may be."""
    url = make_url(database)
    return URL.create(url.get_backend_name(), url.username, None, url.host, url.port, url.database).render_as_string()
