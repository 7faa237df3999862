"""The clock of the catalog's database, by which leases run: the clocks of servers may differ by minutes."""

import threading
import time
from collections.abc import Callable

from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

FRESH_NS = 60 * 1_000_000_000  # after which it is compared again; in between it goes as fast as this machine's
NOW = text("select (extract(epoch from clock_timestamp()) * 1000000)::bigint")


class CatalogClock:
    """Nanoseconds since 1970 as PostgreSQL has them, at next to no cost; of SQLite, as this machine has them.

    Setting this machine's clock does not move it. For several threads.
    """

    def __init__(self, engine: Engine, elapsed_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._engine = engine
        self._elapsed_ns = elapsed_ns
        self._lock = threading.Lock()
        self._compared: tuple[int, int] | None = None  # when, and how far the database's clock is ahead of `elapsed`

    def __call__(self) -> int:
        """Return the time. Raises: what database.NO_ANSWER holds, as long as the database never answered."""
        if self._engine.dialect.name != "postgresql":
            return time.time_ns()
        compared = self._compared
        if compared is None:
            compared = self._compare()
        elif self._elapsed_ns() - compared[0] > FRESH_NS and self._lock.acquire(blocking=False):
            try:
                compared = self._compare()
            except SQLAlchemyError:  # until it answers again, the last comparison holds
                pass
            finally:
                self._lock.release()
        return self._elapsed_ns() + compared[1]

    def _compare(self) -> tuple[int, int]:
        with self._engine.execution_options(writes=False).connect() as connection:
            connection.execute(NOW)  # a new connection or statement takes longer than one that is ready
            before = self._elapsed_ns()
            now_ns = int(connection.execute(NOW).scalar_one()) * 1000
            after = self._elapsed_ns()
        self._compared = after, now_ns - (before + after) // 2
        return self._compared
