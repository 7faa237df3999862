"""The ranking of what is slower than its peers, over all runs."""

from dataclasses import dataclass
from enum import StrEnum

SLOWER = 0.05  # than the peers' median: what is less is no straggler
SURE = 0.95  # probability of being slower by more than that, from which on something is named
FEWEST_RUNS = 3  # in which it was compared, below which nothing is named


class Kind(StrEnum):
    """The kind of what is ranked."""

    NODE = "node"
    DEVICE = "device"
    PLACE = "rank place"
    SWITCH = "switch"


class Basis(StrEnum):
    """The basis of an effect: ranks of one run beside each other, or whole runs beside their cohort's others."""

    RANKS = "ranks"
    RUN_TIMES = "run times"


@dataclass(frozen=True)
class Ranked:
    """One thing's time over that of its peers in the median: `ratio`, shrunken, with its 90 % interval.

    `chance_slower` is the probability that it is slower by more than SLOWER; it is `named` where that is SURE and runs
    suffice. `since_ns` is when the level began that the ratio is of, `since` with what; `was_ratio` is the level
    before, if there was one. `runs` counts those of the level.
    """

    kind: Kind
    name: str
    system: str
    ratio: float
    low_ratio: float
    high_ratio: float
    chance_slower: float
    named: bool
    runs: int
    since_ns: int | None
    since: str
    was_ratio: float | None
    basis: Basis


@dataclass(frozen=True)
class Ranking:
    """Everything that was compared, the surest stragglers first.

    `runs` were looked at, `compared_runs` of them had ranks on several nodes that recorded their waiting, and
    `timed_runs` could only be compared by their time. `noise_ratio` is by how much a node differs from run to run.
    """

    runs: int
    compared_runs: int
    timed_runs: int
    noise_ratio: float | None
    ranked: tuple[Ranked, ...]
    warnings: tuple[str, ...]

    @property
    def named(self) -> tuple[Ranked, ...]:
        """The stragglers."""
        return tuple(entry for entry in self.ranked if entry.named)
