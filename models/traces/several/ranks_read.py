"""Traces of one run, read rank by rank: what is of each rank alone, and what is shared by analyses of several."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from crosswind.data.traces.trace import Kind, RankTrace
from crosswind.models.traces.breakdown import Breakdown, breakdown
from crosswind.models.traces.clocks import Clocks, clocks
from crosswind.models.traces.collectives import Collectives, collectives
from crosswind.models.traces.graph.build import graph
from crosswind.models.traces.graph.graph import Graph
from crosswind.models.traces.kernels import KernelSums
from crosswind.models.traces.operators import OperatorSums
from crosswind.models.traces.pipeline import stages_of
from crosswind.models.traces.pop import RankUse, use_of_devices, use_of_host
from crosswind.models.traces.several.compact import compact
from crosswind.models.traces.steps import turns

OF_HOST = (Kind.OPERATOR, Kind.USEFUL)


@dataclass(frozen=True)
class Several:
    """Compact traces of one run, by rank, with what several analyses share."""

    traces: Sequence[RankTrace]

    @classmethod
    def of(cls, traces: Iterable[RankTrace]) -> Self:
        """Return them of whole traces, each of which may be freed once the next one is asked for."""
        return cls(sorted(map(compact, traces), key=by_rank))

    @cached_property
    def collectives(self) -> Collectives:
        """The collectives, matched across ranks."""
        return collectives(self.traces)

    @cached_property
    def clocks(self) -> Clocks:
        """The clocks of the ranks."""
        return clocks(self.traces, self.collectives)

    @cached_property
    def stages(self) -> dict[int, int]:
        """The pipeline's stage of each rank; empty where the traces name no pipeline."""
        return stages_of(self.traces)

    @cached_property
    def graph(self) -> Graph:
        """The activities with their dependencies."""
        return graph(self.traces, self.collectives, self.clocks)


@dataclass(frozen=True)
class RankParts:
    """Facts of one rank alone."""

    events: int
    breakdown: Breakdown
    step_ns: tuple[int, ...]
    devices: RankUse
    host: RankUse
    has_operators: bool  # or stated useful times of its host

    @classmethod
    def of(cls, trace: RankTrace) -> Self:
        """Return the parts of a whole trace."""
        return cls(
            len(trace.events),
            breakdown(trace),
            tuple(turns(trace).duration_ns.tolist()),
            use_of_devices(trace),
            use_of_host(trace),
            bool(np.any(np.isin(trace.events.kind, OF_HOST))),
        )


@dataclass(frozen=True)
class RanksRead:
    """Both, by rank, and sums over the ranks."""

    several: Several
    parts: Sequence[RankParts]
    kernels: KernelSums
    operators: OperatorSums

    @classmethod
    def of(cls, traces: Iterable[RankTrace]) -> Self:
        """Read whole traces, each of which may be freed once the next one is asked for."""
        rows, kernels, operators = [], KernelSums(), OperatorSums()
        for trace in traces:
            kernels.add(trace)
            operators.add(trace)
            rows.append((compact(trace), RankParts.of(trace)))
        rows.sort(key=lambda row: by_rank(row[0]))
        return cls(Several([trace for trace, _ in rows]), [parts for _, parts in rows], kernels, operators)


def by_rank(trace: RankTrace) -> int:
    """Return the place of a trace among others; those that state no rank are first."""
    return -1 if trace.rank is None else trace.rank
