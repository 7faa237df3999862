"""Which fault is wanted, when and how strong, and what was really done."""

import re
from dataclasses import dataclass
from typing import Self

from crosswind.data.errors import InvalidInputError
from crosswind.ingest.lab.injectors import INJECTORS, Injector, Target

FORM = "kind:rank:strength[@begin[-end]] such as cpu_hog:1:2@10-30"
NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
TIMES = re.compile(rf"(?P<begin>{NUMBER})?(?:-(?P<end>{NUMBER}))?")
WHOLE = frozenset({"processes", "streams", "writers"})


@dataclass(frozen=True)
class Injection:
    """One fault that is wanted; times are seconds after training begins."""

    kind: str
    strength: float
    host: int
    rank: int
    begin_seconds: float | None = None  # none: before the run
    end_seconds: float | None = None  # none: to its end

    def __post_init__(self) -> None:
        """Raises: InvalidInputError."""
        if self.kind not in INJECTORS:
            raise InvalidInputError(f"kind {self.kind!r}: expected one of {', '.join(INJECTORS)}")
        if self.rank < 0 or self.host < 0:
            raise InvalidInputError(f"rank {self.rank}, host {self.host}: expected 0 or more")
        self._check_strength()
        begin, end = self.begin_seconds or 0.0, self.end_seconds
        if not 0 <= begin < float("inf"):
            raise InvalidInputError(f"begin {begin:g}: expected seconds from 0 on")
        if end is not None and not begin < end < float("inf"):
            raise InvalidInputError(f"end {end:g}: expected seconds after the begin {begin:g}")

    def _check_strength(self) -> None:
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

    @classmethod
    def parse(cls, text: str) -> Self:
        """What `kind:rank:strength[@begin[-end]]` asks for, on the host of that number. Raises: InvalidInputError."""
        try:
            return cls._parse(text)
        except InvalidInputError as error:
            raise InvalidInputError(f"injection {text!r}: {error}") from error

    @classmethod
    def _parse(cls, text: str) -> Self:
        what, at, times = text.partition("@")
        fields = what.split(":")
        if len(fields) != 3:
            raise InvalidInputError(f"expected {FORM}")
        kind, rank, strength = fields
        found = TIMES.fullmatch(times)
        if found is None or bool(at) != bool(times):
            raise InvalidInputError(f"times {times!r}: expected begin, begin-end or -end in seconds")
        if not re.fullmatch(r"\d{1,9}", rank, re.ASCII):
            raise InvalidInputError(f"rank {rank!r}: expected a whole number from 0 on")
        if not re.fullmatch(NUMBER, strength, re.ASCII):
            raise InvalidInputError(f"strength {strength!r}: expected a number")
        begin, end = (None if seconds is None else float(seconds) for seconds in found.group("begin", "end"))
        return cls(kind, float(strength), int(rank), int(rank), begin, end)

    def __str__(self) -> str:
        begin = "" if self.begin_seconds is None else _number(self.begin_seconds)
        end = "" if self.end_seconds is None else f"-{_number(self.end_seconds)}"
        return f"{self.kind}:{self.rank}:{_number(self.strength)}" + (f"@{begin}{end}" if begin or end else "")


@dataclass(frozen=True)
class Truth:
    """One fault as it was: really there from the start to the end, in nanoseconds UTC, on this rank."""

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
        """Switches the fault on. Raises: UnavailableError."""
        self._injection, self._node = injection, node
        self._injector: Injector = INJECTORS[injection.kind]()
        self._started_ns = self._injector.start(target, injection.strength)

    def end(self) -> Truth:
        """Switches it off, if it is still on; what was done. Raises: UnavailableError."""
        ended_ns = self._injector.stop()
        wanted = self._injection
        unit = self._injector.unit
        return Truth(wanted.kind, wanted.strength, unit, self._node, wanted.rank, self._started_ns, ended_ns)


def _number(value: float) -> str:
    """The shortest text that means exactly this number."""
    return repr(value).removesuffix(".0")
