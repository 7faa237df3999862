"""Injections: planned faults, and the truth of what was done."""

from dataclasses import dataclass

from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.ingest.lab.hosts.companion import EndedEarlyError
from crosswind.ingest.lab.injectors import INJECTORS, Injector, Target

WHOLE = frozenset({"processes", "streams", "writers"})


class FaultRemainsError(UnavailableError):
    """A fault could not be switched off: it would disturb the next measurements."""


@dataclass(frozen=True)
class Injection:
    """One planned fault, on a rank and its host."""

    kind: str
    strength: float
    host: int
    rank: int

    def __post_init__(self) -> None:
        """Raises: InvalidInputError."""
        if self.kind not in INJECTORS:
            raise InvalidInputError(f"kind {self.kind!r}: expected one of {', '.join(INJECTORS)}")
        if self.rank < 0 or self.host < 0:
            raise InvalidInputError(f"rank {self.rank}, host {self.host}: expected 0 or more")
        injector = INJECTORS[self.kind]
        lowest, highest = injector.limits
        if not lowest <= self.strength <= highest:
            raise InvalidInputError(
                f"strength {self.strength:g}: {self.kind} expects {lowest:g} to {highest:g} {injector.unit}"
            )
        if injector.unit in WHOLE and not self.strength.is_integer():
            raise InvalidInputError(
                f"strength {self.strength:g}: {self.kind} expects a whole number of {injector.unit}"
            )


@dataclass(frozen=True)
class Truth:
    """One fault as it was: present from the start to the end, in nanoseconds UTC, on this rank."""

    kind: str
    strength: float
    unit: str
    node: str
    rank: int
    started_ns: int
    ended_ns: int


class Applied:
    """An injection at work."""

    def __init__(self, injection: Injection, target: Target, node: str) -> None:
        """Switch the fault on, or leave nothing of it. Raises: UnavailableError, FaultRemainsError."""
        self._injection, self._node = injection, node
        self._injector: Injector = INJECTORS[injection.kind]()
        try:
            self._started_ns = self._injector.start(target, injection.strength)
        except UnavailableError:
            self._switch_off()
            raise

    def end(self) -> Truth:
        """Switch it off, if it is still on. Return what was done.

        Raises: EndedEarlyError when it had ended by itself; FaultRemainsError when it is still there.
        """
        ended_ns = self._switch_off()
        wanted = self._injection
        unit = self._injector.unit
        return Truth(wanted.kind, wanted.strength, unit, self._node, wanted.rank, self._started_ns, ended_ns)

    def _switch_off(self) -> int:
        try:
            return self._injector.stop()
        except EndedEarlyError:
            raise
        except UnavailableError as error:
            fault = f"{self._injection.kind} on {self._node}"
            raise FaultRemainsError(f"{fault} cannot be switched off, so the lab ends: {error}") from error
