"""A run replayed with one cause taken out: S = measured / replayed, and the time that it would save.

Source: Lin et al., "Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI 2025.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from crosswind.models.traces.graph.graph import Graph
from crosswind.models.traces.graph.replay import Scale, replayed


@dataclass(frozen=True)
class Change:
    """Factors on a graph's durations and lags, as `replayed` takes them, and what they take out."""

    cause: str
    scale: Scale
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class WhatIf:
    """A run's time as measured and replayed, over its measured steps."""

    cause: str  # that is taken out: "rank 1 slower than its peers"
    measured_ns: float
    replayed_ns: float
    steps: int
    notes: tuple[str, ...] = ()

    @property
    def slowdown(self) -> float:
        """Return S = measured / replayed; 1 where nothing would be gained."""
        return self.measured_ns / self.replayed_ns if self.replayed_ns else 1.0

    @property
    def saved_ns_per_step(self) -> float:
        """Return the time that a step would save."""
        return (self.measured_ns - self.replayed_ns) / self.steps

    def saved_ns(self, steps: int) -> float:
        """Return the time that a run of so many steps would save."""
        return self.saved_ns_per_step * steps


Cause: TypeAlias = Callable[[Graph], Change]


def what_if(graph: Graph, cause: Cause) -> WhatIf:
    """Replay a graph without a cause, one of `causes`. Raises: InvalidInputError, as the cause does."""
    [one] = what_if_each(graph, [cause])
    return one


def what_if_each(graph: Graph, causes: Sequence[Cause]) -> tuple[WhatIf, ...]:
    """Replay it without each of several causes, in one pass. Raises: InvalidInputError, as the causes do."""
    changes = [cause(graph) for cause in causes]
    ends = replayed(graph, [change.scale for change in changes]).max(axis=0, initial=0.0).tolist()
    return tuple(
        WhatIf(change.cause, float(graph.span_ns), end, graph.steps, (*graph.notes, *change.notes))
        for change, end in zip(changes, ends, strict=True)
    )
