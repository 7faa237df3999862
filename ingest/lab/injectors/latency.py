"""Additional latency of a link, both ways."""

import time
from typing import ClassVar

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.lab.hosts.wire import Wire
from crosswind.ingest.lab.injectors.injector import Target


class Latency:
    """Every packet waits in the wire between the host and the bridge."""

    kind: ClassVar[str] = "latency"
    unit: ClassVar[str] = "ms each way"
    limits: ClassVar[tuple[float, float]] = (0.0, 1000.0)

    def __init__(self) -> None:
        self._wire: Wire | None = None

    def start(self, target: Target, strength: float) -> int:
        """Delay packets from now on. Raises: UnavailableError."""
        wire = target.host.wire
        if wire is None:
            raise UnavailableError(f"host {target.host.index}: has no wire, make it by hosts(wired=...)")
        if self._wire is None:
            wire.delay(strength)
            self._wire = wire
        return time.time_ns()

    def stop(self) -> int:
        """Stop delaying packets. Raises: UnavailableError."""
        if self._wire is not None:
            self._wire.delay(0)
            self._wire = None
        return time.time_ns()
