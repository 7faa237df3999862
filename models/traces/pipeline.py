"""Bubbles of a pipeline: when a rank neither computes nor takes part in a collective but transfers between stages.

Ranks are compared within their stage: a stage that holds more of the model than others is long, and its ranks are not
slow for that.

Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", SC 2021.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.traces.naming import operation_of
from crosswind.data.traces.trace import Kind, RankTrace
from crosswind.models.traces.breakdown import intervals
from crosswind.models.traces.clocks import Clocks, aligned, clocks
from crosswind.models.traces.occupancy import occupancy
from crosswind.models.traces.ranks import absent_notes, ranks_of, text_of

TRANSFER = "send_receive"
SLOW = 1.05  # computation against the median of the others of the stage


@dataclass(frozen=True)
class PipelineRank:
    """A rank's time over the whole run, ns; the three parts sum to it."""

    rank: int
    stage: int
    compute_ns: int
    collective_ns: int  # in collectives but transfers between stages, and not computing
    bubble_ns: int
    against_stage: float  # computation by the median of the others of its stage; NaN for one alone


@dataclass(frozen=True)
class PipelineStage:
    """Means over the ranks of a stage, ns."""

    stage: int
    ranks: tuple[int, ...]
    compute_ns: float
    bubble_ns: float


@dataclass(frozen=True)
class Pipeline:
    """A pipeline's stages and ranks, in their order."""

    span_ns: int
    ranks: tuple[PipelineRank, ...]
    stages: tuple[PipelineStage, ...]
    notes: tuple[str, ...] = ()

    @property
    def bubble_share(self) -> float:
        """Return the share of all ranks' time that is bubbles."""
        return sum(one.bubble_ns for one in self.ranks) / (self.span_ns * len(self.ranks)) if self.span_ns else 0.0

    @property
    def longest_stage(self) -> int:
        """Return the stage that computes longest."""
        return max(self.stages, key=lambda one: one.compute_ns).stage

    @property
    def balance(self) -> float:
        """Return mean by maximum of the stages' computation; NaN without any."""
        times = [one.compute_ns for one in self.stages]
        return float(np.mean(times)) / max(times) if max(times) else float("nan")

    @property
    def slow_ranks(self) -> tuple[int, ...]:
        """Return the ranks that compute longer than others of their own stage, the slowest first."""
        slow = [one for one in self.ranks if one.against_stage > SLOW]
        return tuple(one.rank for one in sorted(slow, key=lambda one: -one.against_stage))


def expected_bubble_share(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """Return the share of the bubble in a schedule of equal stages; `chunks` are parts of the model on each rank.

    Raises: InvalidInputError for counts under 1.
    """
    if min(stages, micro_batches, chunks) < 1:
        raise InvalidInputError(f"{stages} stages, {micro_batches} micro-batches, {chunks} chunks: expected 1 or more")
    return (stages - 1) / (micro_batches * chunks + stages - 1)


def stages_of(traces: Sequence[RankTrace]) -> dict[int, int]:
    """Return the stage of each rank, where all lie in communicators that only transfer; else empty.

    The order of ranks in such a communicator is taken as that of the stages.
    """
    stages: dict[int, int] = {}
    for rank, trace in zip(ranks_of(traces), traces, strict=True):
        mine, by_members = trace.events.of(Kind.COLLECTIVE, Kind.MESSAGE), defaultdict[tuple[int, ...], set[str]](set)
        for code, group in enumerate(trace.groups):
            names = np.unique(mine.name[mine.group == code]).tolist()
            by_members[group.within or group.ranks] |= {operation_of(trace.names[name]) for name in names}
        for members, operations in by_members.items():
            if operations == {TRANSFER} and rank in members:
                stages[rank] = members.index(rank)
    return stages if len(stages) == len(traces) else {}


def pipeline(
    traces: Sequence[RankTrace], stages: Mapping[int, int] | None = None, offsets: Clocks | None = None
) -> Pipeline:
    """Return the bubbles of ranks, whose stages are given, or read off their communicators.

    Raises: InvalidInputError as `ranks_of`, and for a rank without a stage.
    """
    ranks, of = ranks_of(traces), stages_of(traces) if stages is None else stages
    lost = [rank for rank in ranks if rank not in of]
    if lost:
        raise InvalidInputError(f"stages: none of {text_of(lost)}; expected one for each traced rank")
    offsets = clocks(traces) if offsets is None else offsets
    moved = aligned(traces, offsets)
    spans = [trace.span for trace in moved if len(trace.events)] or [(0, 0)]
    span = min(begin for begin, _ in spans), max(end for _, end in spans)
    times = {rank: _times(trace, span) for rank, trace in zip(ranks, moved, strict=True)}
    rows = tuple(PipelineRank(rank, of[rank], *times[rank], _against(rank, of, times)) for rank in ranks)
    by_stage = tuple(_stage(stage, rows) for stage in sorted({one.stage for one in rows}))
    return Pipeline(span[1] - span[0], rows, by_stage, (*absent_notes(traces), *offsets.notes))


def _times(trace: RankTrace, span: tuple[int, int]) -> tuple[int, int, int]:
    """Return the computation, collectives and bubbles of one rank."""
    events, device = trace.events, trace.events.on_device()
    communication = device.of(Kind.COLLECTIVE) if len(device) else events.of(Kind.MESSAGE)
    transfers = [code for code in np.unique(communication.name).tolist() if operation_of(trace.names[code]) == TRANSFER]
    computing = (Kind.KERNEL,) if len(device) else (Kind.OPERATOR, Kind.USEFUL)
    collective = communication.where(~np.isin(communication.name, transfers))
    pieces = occupancy(span, {"compute": intervals(events, *computing), "collective": intervals(collective)})
    compute, meets = pieces.busy["compute"], pieces.busy["collective"] & ~pieces.busy["compute"]
    return pieces.total(compute), pieces.total(meets), pieces.total(~compute & ~meets)


def _against(rank: int, stages: Mapping[int, int], times: Mapping[int, tuple[int, int, int]]) -> float:
    others = [times[one][0] for one in times if one != rank and stages[one] == stages[rank]]
    return times[rank][0] / float(np.median(others)) if others and np.median(others) else float("nan")


def _stage(stage: int, rows: Sequence[PipelineRank]) -> PipelineStage:
    mine = [one for one in rows if one.stage == stage]
    compute, bubble = (float(np.mean([getattr(one, name) for one in mine])) for name in ("compute_ns", "bubble_ns"))
    return PipelineStage(stage, tuple(one.rank for one in mine), compute, bubble)
