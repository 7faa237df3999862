"""Captures as the user asks for them: `--trace auto`, or ranks and steps by hand, and the budget."""

import re
from dataclasses import dataclass
from typing import Self

from crosswind.data.schema.errors import InvalidInputError

OFF, AUTO = "off", "auto"
FIRST_STEP = 10  # by hand without steps: after those that compile, allocate and connect
MOST_RANKS, MOST_STEPS = 64, 1000
BY_HAND = re.compile(r"(?P<ranks>\d+(-\d+)?(,\d+(-\d+)?)*)(:(?P<first>\d+)(-(?P<last>\d+))?)?", re.ASCII)
SIZE = re.compile(r"(\d+(?:\.\d+)?)([kMG]?)B?", re.ASCII)
UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


@dataclass(frozen=True)
class Budget:
    """The most that captures of one run may take: bytes of all files, compressed; ranks and steps of one capture."""

    size_bytes: int = 200_000_000
    steps: int = 3
    ranks: int = 3
    captures: int = 4
    pause_seconds: float = 60.0  # between two captures

    def __post_init__(self) -> None:
        """Raises: InvalidInputError naming the option."""
        for option, value, most in (
            ("--trace-bytes", self.size_bytes, 10**12),
            ("--trace-steps", self.steps, MOST_STEPS),
            ("--trace-ranks", self.ranks, MOST_RANKS),
            ("--trace-captures", self.captures, 1000),
        ):
            if not 1 <= value <= most:
                raise InvalidInputError(f"{option} {value}: expected 1 to {most}")
        if not 0 <= self.pause_seconds <= 86_400:
            raise InvalidInputError(f"--trace-pause {self.pause_seconds:g}: expected 0 to 86400 seconds")


@dataclass(frozen=True)
class Wanted:
    """The captures of a run: chosen beside it, or, with `ranks`, these in steps `first` to `last`."""

    budget: Budget
    ranks: tuple[int, ...] = ()
    first: int = FIRST_STEP
    last: int = FIRST_STEP

    @classmethod
    def parse(cls, text: str, budget: Budget) -> Self | None:
        """Return what `--trace` asks for; None for `off`. Raises: InvalidInputError."""
        if text == OFF:
            return None
        if text == AUTO:
            return cls(budget)
        asked = BY_HAND.fullmatch(text)
        if asked is None:
            raise InvalidInputError(f"--trace {text!r:.80}: expected auto, off, or RANKS[:STEPS] as 0,3 or 0-3:100-102")
        first = int(asked["first"] or FIRST_STEP)
        last = int(asked["last"] or first + budget.steps - 1)
        ranks = tuple(sorted({rank for part in asked["ranks"].split(",") for rank in _ranks(part, text)}))
        if len(ranks) > MOST_RANKS:
            raise InvalidInputError(f"--trace {text!r:.80}: expected at most {MOST_RANKS} ranks")
        if not first <= last < first + MOST_STEPS:
            raise InvalidInputError(f"--trace {text!r:.80}: expected 1 to {MOST_STEPS} steps, the first one first")
        return cls(budget, ranks, first, last)


def _ranks(part: str, text: str) -> range:
    first, _, last = part.partition("-")
    ranks = range(int(first), int(last or first) + 1)
    if not 0 < len(ranks) <= MOST_RANKS or ranks[-1] >= 2**31:
        raise InvalidInputError(f"--trace {text!r:.80}: {part} is no range of at most {MOST_RANKS} ranks")
    return ranks


def bytes_of(text: str) -> int:
    """Return the bytes of `--trace-bytes`, such as 200M. Raises: InvalidInputError."""
    size = SIZE.fullmatch(text)
    if size is None:
        raise InvalidInputError(f"--trace-bytes {text!r:.80}: expected a number of bytes such as 500k, 200M or 2G")
    return int(float(size[1]) * UNITS[size[2]])
