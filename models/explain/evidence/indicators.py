"""Kinds of evidence that a cause may declare, beyond the columns that every run records by itself.

`Sampled` is read from the samples of the run's nodes, `InSegments` is computed from its own segments, `RunsAlike` and
`ComputeLost` come from comparing it with other runs.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run
from crosswind.models.explain.evidence.rate import Rate

OUTLYING_SHARE = 0.05  # of the segments at most: what happens more often is no outlier
OUTLYING_STEPS = 2.0  # usual segments by which a segment lies beyond the median


@dataclass(frozen=True)
class SegmentTimes:
    """Times of a run's segments by column: `of_ranks` of shape (n_segments, n_ranks), seconds or counts.

    `culprit` is the place of the rank that arrived last, shape (n_segments,); `last` are its times, shape
    (n_segments,); `usual` is the median time of a segment, seconds; `steps` are the numbers of the steps.
    """

    of_ranks: Mapping[str, Floats]
    last: Mapping[str, Floats]
    culprit: NDArray[np.int64]
    usual: float
    steps: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def work(self) -> Floats:
        """Compute of every rank without its wait for a core, seconds, shape (n_segments, n_ranks)."""
        return self.of_ranks["compute"] - self.of_ranks["run_queue_wait"]

    @property
    def idle(self) -> Floats:
        """Compute in which the last rank's thread neither ran nor waited for a core, seconds, shape (n_segments,)."""
        return self.last["compute"] - self.last["run_queue_wait"] - self.last["cpu_user"] - self.last["cpu_system"]

    def outlying(self, seconds: Floats) -> Floats:
        """Return the seconds beyond the median in the few segments where that is more than two usual ones; else 0."""
        beyond = seconds - np.median(seconds)
        is_outlier = beyond > OUTLYING_STEPS * self.usual
        return np.where(is_outlier & (is_outlier.mean() <= OUTLYING_SHARE), beyond, 0.0)


@dataclass(frozen=True)
class ComparedRun:
    """Facts of a run by which runs are compared.

    `nodes` maps ranks to nodes, `switches` nodes to their leaf switches as far as they are recorded. `phases` are mean
    seconds a segment; `work` of each rank that recorded steps its mean compute without waiting for a core, seconds.
    `samples` are values of the `Sampled` that `ComputeLost` names.
    """

    run: Run
    nodes: Mapping[int, str]
    switches: Mapping[str, str]
    phases: Mapping[str, float]
    work: Mapping[int, float]
    samples: Mapping[str, float]


@dataclass(frozen=True)
class Sampled:
    """Seconds or counts a step on the worst of the run's nodes, or the mean of a gauge; the largest rate counts.

    It belongs to the rank that arrived last or, `on_links`, to all ranks; then the node with most of it is named, if it
    `locates`. With `is_zero_unsampled` missing samples mean zero, such as of a group without a quota.
    """

    column: str
    rates: tuple[Rate, ...]
    on_links: bool = False
    locates: bool = True
    is_zero_unsampled: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Its one column."""
        return (self.column,)

    @property
    def of_all_ranks(self) -> bool:
        """Return whether it belongs to all ranks alike."""
        return self.on_links

    @property
    def is_gauge(self) -> bool:
        """Return whether it is the mean of a gauge, however long a step is."""
        return any(rate.is_gauge for rate in self.rates)


@dataclass(frozen=True)
class InSegments:
    """Seconds of each segment, shape (n_segments,), computed from the run's own times."""

    column: str
    measure: Callable[[SegmentTimes], Floats]
    of_all_ranks: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Its one column."""
        return (self.column,)


@dataclass(frozen=True)
class RunsAlike:
    """Seconds a segment that the other runs take which share a mark with the run, in each of `phases`.

    `marks` returns one for each of a cohort's runs; runs whose mark is false share it with none.
    """

    phases: ClassVar[tuple[str, ...]] = ("compute", "fabric")
    of_all_ranks: ClassVar[bool] = True

    mark: str
    marks: Callable[[Sequence[ComparedRun]], Sequence[Hashable]]

    @property
    def columns(self) -> tuple[str, ...]:
        """A column a phase."""
        return tuple(f"{self.mark}_{phase}" for phase in self.phases)


@dataclass(frozen=True)
class ComputeLost:
    """Compute that a rank would have saved, in proportion to a share that comparing runs gives.

    `shares` returns by run id one share of whichever rank arrived last, or a share of each rank. `samples` are read for
    the comparison alone.
    """

    of_all_ranks: ClassVar[bool] = False

    column: str
    shares: Callable[[Sequence[ComparedRun]], Mapping[str, float | Mapping[int, float]]]
    samples: tuple[Sampled, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Its one column."""
        return (self.column,)


Indicator = Sampled | InSegments | RunsAlike | ComputeLost
