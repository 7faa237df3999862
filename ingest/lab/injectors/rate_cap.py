"""A cap on the bandwidth of a link, both ways."""

import time
from typing import ClassVar

from crosswind.ingest.lab.hosts.hosts import Host, limit_rate
from crosswind.ingest.lab.injectors.injector import Target


class RateCap:
    """A token bucket on both ends of the host's link."""

    kind: ClassVar[str] = "rate_cap"
    unit: ClassVar[str] = "Mbit/s"
    limits: ClassVar[tuple[float, float]] = (1.0, 100_000.0)

    def __init__(self) -> None:
        self._host: Host | None = None

    def start(self, target: Target, strength: float) -> int:
        """Cap the link, whatever its speed was. Raises: UnavailableError."""
        if self._host is None:
            self._host = target.host  # first: one of the two ends may refuse
            limit_rate(target.host, strength)
        return time.time_ns()

    def stop(self) -> int:
        """Restore the link's original speed. Raises: UnavailableError."""
        if self._host is not None:
            limit_rate(self._host, self._host.megabits)
            self._host = None
        return time.time_ns()
