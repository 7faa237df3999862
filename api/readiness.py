"""Readiness: the store can be read and written now."""

import time
from threading import Lock

from crosswind.data.catalog.database import NO_ANSWER
from crosswind.data.schema.errors import ProjectError, UnavailableError
from crosswind.data.store.store import Store

FRESH_SECONDS = 2.0  # so long an answer holds, so that those who ask often cost the disk nothing
PATIENCE_SECONDS = 5.0


def check_store(store: Store) -> None:
    """Check that the catalog takes a row and the lake a file, by writing to both.

    Raises: UnavailableError, MalformedError, ConflictError, or what the catalog's driver raises without an answer.
    """
    store.catalog.check()
    store.lake.storage.check()


class Readiness:
    """Checks a store for all who ask: once at a time, and not more often than every FRESH_SECONDS."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._checked = -FRESH_SECONDS
        self._error: Exception | None = None

    def check(self) -> None:
        """Check as `check_store` does, unless that was a moment ago. Raises: as that."""
        if not self._lock.acquire(timeout=PATIENCE_SECONDS):
            raise UnavailableError(f"the store has not answered for {PATIENCE_SECONDS:g} s")
        try:
            if time.monotonic() - self._checked >= FRESH_SECONDS:
                self._look()
            if self._error is not None:
                raise self._error
        finally:
            self._lock.release()

    def _look(self) -> None:
        self._error = None
        try:
            check_store(self._store)
        except (ProjectError, *NO_ANSWER) as error:
            self._error = error
        self._checked = time.monotonic()
