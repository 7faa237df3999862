"""Sizes of a store's folders, looked at once a minute at most."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from threading import Lock

from sqlalchemy import Engine, text

FRESH_SECONDS = 60.0
FOLDERS = ("lake", "models", "rejected", "incoming")


class Sizes:
    """Bytes and files of a store, as of a minute ago at most."""

    def __init__(self, home: Path, engine: Engine) -> None:
        self._home = home
        self._engine = engine
        self._turn = Lock()
        self._looked: tuple[float, Mapping[str, int | None]] | None = None

    def look(self) -> Mapping[str, int | None]:
        """Return `NAME bytes` and `NAME files` of each folder, and the bytes of the catalog."""
        with self._turn:
            now = time.monotonic()
            if self._looked is None or now - self._looked[0] >= FRESH_SECONDS:
                self._looked = now, self._sizes()
            return self._looked[1]

    def _sizes(self) -> Mapping[str, int | None]:
        sizes: dict[str, int | None] = {"catalog bytes": self._catalog_bytes()}
        for name in FOLDERS:
            sizes[f"{name} bytes"], sizes[f"{name} files"] = _size_of(self._home / name)
        return sizes

    def _catalog_bytes(self) -> int | None:
        if self._engine.dialect.name == "sqlite":
            return sum(
                path.stat().st_size for path in Path(str(self._engine.url.database)).parent.glob("catalog.sqlite*")
            )
        with self._engine.connect() as connection:
            size = connection.execute(text("select pg_database_size(current_database())")).scalar()
        return None if size is None else int(size)


def _size_of(folder: Path) -> tuple[int, int]:
    """Return bytes and number of the files below a folder; one that goes meanwhile counts nothing."""
    size = files = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.stat(os.path.join(place, name)).st_size  # noqa: PTH116, PTH118 - of a million files
                files += 1
            except OSError:
                continue
    return size, files
