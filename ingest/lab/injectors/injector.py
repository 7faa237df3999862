"""The protocol of injectors, and their target."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from crosswind.ingest.lab.conditions import Conditions
from crosswind.ingest.lab.hosts.hosts import Host


@dataclass(frozen=True)
class Target:
    """The rank to disturb, and where it runs."""

    host: Host
    pids: tuple[int, ...]
    rank: int
    scratch: Path
    conditions: Conditions
    neighbours: tuple[Host, ...] = ()  # hosts on the same bridge, other than the rank's own
    core: int | None = None  # that the rank is pinned to


class Injector(Protocol):
    """One kind of fault, off when made; switching on what is on, or off what is off, changes nothing."""

    kind: ClassVar[str]
    unit: ClassVar[str]  # of the strength
    limits: ClassVar[tuple[float, float]]  # lowest and highest strength

    def start(self, target: Target, strength: float) -> int:
        """Switch the fault on. Return the time, in nanoseconds UTC, when it was present. Raises: UnavailableError."""
        ...

    def stop(self) -> int:
        """Switch the fault off. Return the time, in nanoseconds UTC, when it was gone. Raises: UnavailableError."""
        ...
