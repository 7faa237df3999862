"""Steps of a run's ranks, put together from rows that arrive rank by rank and late."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

PATIENCE = 16  # steps by which a rank may be behind the newest row before its step is judged without it


@dataclass(frozen=True, slots=True)
class RankStep:
    """One step of one rank, seconds: its own time, in which it waited for nobody, and its wait for other ranks."""

    rank: int
    step: int
    own: float
    waited: float


@dataclass
class StepTable:
    """Rows by step, until a step has all ranks; a step that was handed out takes no more rows."""

    ranks: set[int] = field(default_factory=set)
    newest: int = -1
    _next: int = 0
    _rows: dict[int, dict[int, RankStep]] = field(default_factory=dict)

    def add(self, row: RankStep) -> None:
        """Take a row; one of a step that is over is dropped."""
        self.ranks.add(row.rank)
        if row.step >= self._next:
            self._rows.setdefault(row.step, {})[row.rank] = row
            self.newest = max(self.newest, row.step)

    def complete(self) -> Iterator[tuple[int, Mapping[int, RankStep]]]:
        """Yield the steps that have all ranks, and those for which nobody waits any longer, in order."""
        while self._rows:
            step = min(self._rows)
            if len(self._rows[step]) < len(self.ranks) and step > self.newest - PATIENCE:
                return
            self._next = step + 1
            yield step, self._rows.pop(step)
