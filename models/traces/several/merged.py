"""All ranks of a run on one clock, of which one at a time is whole in memory, as they are read twice."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from crosswind.data.traces.perfetto import first_begin_ns
from crosswind.data.traces.trace import RankTrace
from crosswind.models.traces.clocks import Clocks, aligned, on_first
from crosswind.models.traces.several.ranks_read import Several


@dataclass(frozen=True)
class Merged:
    """The result of the first reading."""

    clocks: Clocks  # by rank
    begin_ns: int  # of the first event, on the clock of the first rank

    @classmethod
    def of(cls, traces: Iterable[RankTrace]) -> Self:
        """Read whole traces, each of which may be freed once the next one is asked for."""
        several = Several.of(traces)
        return cls(several.clocks, first_begin_ns(aligned(several.traces, several.clocks)))

    def on_one_clock(self, traces: Iterable[RankTrace]) -> Iterator[RankTrace]:
        """Yield the same traces, by rank, on the clock of the first one."""
        for place, trace in enumerate(traces):
            yield on_first(trace, self.clocks.of_rank(place))
