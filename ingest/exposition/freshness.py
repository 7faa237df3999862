"""The check that the agent still sweeps, from its own rows as they come."""

import threading
import time
from collections.abc import Callable, Mapping

from crosswind.ingest.exposition.latest import LatestReading

AGENT = "agent"  # the agent's own row, which every sweep renews
SHORTEST_NS = 10_000_000_000
PACES = 3  # sweeps that may be late before the agent is


class Freshness:
    """Watches the agent's row; the time between the last two rows seen is the pace."""

    def __init__(self, latest: Callable[[], Mapping[str, LatestReading]]) -> None:
        self._latest = latest
        self._looking = threading.Lock()
        self._started_ns = time.monotonic_ns()
        self._newest_ns: int | None = None
        self._pace_ns = 0

    def look(self) -> None:
        """Look for a newer row."""
        shown = self._latest().get(AGENT)
        if shown is not None:
            with self._looking:
                self._take(shown.rows.mono_ns)

    def _take(self, mono_ns: int) -> None:
        if self._newest_ns is not None and mono_ns > self._newest_ns:
            self._pace_ns = mono_ns - self._newest_ns
        self._newest_ns = mono_ns

    def problem(self, now_ns: int | None = None) -> str | None:
        """Return why the agent seems stuck; None while its sweeps come."""
        self.look()
        now_ns = time.monotonic_ns() if now_ns is None else now_ns
        since_ns = self._started_ns if self._newest_ns is None else self._newest_ns
        if now_ns - since_ns <= max(SHORTEST_NS, PACES * self._pace_ns):
            return None
        return f"the last sweep was {(now_ns - since_ns) // 1_000_000_000} s ago"
