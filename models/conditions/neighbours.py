"""Other runs in progress when a run began, and the idle time of its nodes, from the catalog."""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run, RunState
from crosswind.models.conditions.moment import Moment

COLUMNS = ("neighbour_runs", "neighbour_ranks", "system_runs", "idle_seconds", "hour_of_week")
NEVER_NS = np.iinfo(np.int64).max
HOUR_NS = 3_600_000_000_000
WEEK_HOURS = 168
LONGEST_NS = 7 * 24 * HOUR_NS  # a run that began longer ago is no neighbour, and idle time beyond it is unknown
MONDAY_HOURS = 72  # 1970-01-01 was a Thursday: the week before it began as many hours earlier


@dataclass(frozen=True)
class _Spans:
    """Times of a system's runs, (n_runs,) each; `ended_ns` is NEVER_NS of a run in progress."""

    runs: tuple[Run, ...]
    started_ns: NDArray[np.int64]
    ended_ns: NDArray[np.int64]

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Self:
        """Make them of the runs whose start and end are known, or that are still running."""
        kept = tuple(run for run in runs if _is_placed(run))
        ended = [NEVER_NS if run.ended_ns is None else run.ended_ns for run in kept]
        started = np.array([run.started_ns for run in kept], dtype=np.int64)
        return cls(kept, started, np.array(ended, dtype=np.int64))


@dataclass
class _Sweep:
    """A pass over one system's runs in the order of time: runs in progress, and the last end of a run on each node.

    Runs are numbered by their place in `spans`.
    """

    spans: _Spans
    in_progress: set[int] = field(default_factory=set)
    on_node: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    left_ns: dict[str, int] = field(default_factory=dict)
    _beginning: deque[int] = field(init=False)
    _ending: deque[int] = field(init=False)
    _ageing: deque[int] = field(init=False)

    def __post_init__(self) -> None:
        self._beginning = deque(np.argsort(self.spans.started_ns, kind="stable").tolist())
        self._ageing = self._beginning.copy()
        self._ending = deque(np.argsort(self.spans.ended_ns, kind="stable").tolist())

    def go_to(self, at_ns: int) -> None:
        """Advances to a time not before the last one: starts count before it, ends from it on do not."""
        while self._beginning and self.spans.started_ns[self._beginning[0]] < at_ns:
            self._begin(self._beginning.popleft(), at_ns)
        while self._ending and self.spans.ended_ns[self._ending[0]] < at_ns:
            self._end(self._ending.popleft())
        while self._ageing and self.spans.started_ns[self._ageing[0]] < at_ns - LONGEST_NS:
            self._forget(self._ageing.popleft())

    def _begin(self, place: int, at_ns: int) -> None:
        if self.spans.ended_ns[place] < at_ns:  # it began and ended since the last time
            return
        self.in_progress.add(place)
        for node in self.spans.runs[place].nodes:
            self.on_node[node].add(place)

    def _end(self, place: int) -> None:
        self._forget(place)
        began, ended = int(self.spans.started_ns[place]), int(self.spans.ended_ns[place])
        if ended - began <= LONGEST_NS:
            self.left_ns |= dict.fromkeys(self.spans.runs[place].nodes, ended)

    def _forget(self, place: int) -> None:
        self.in_progress.discard(place)
        for node in self.spans.runs[place].nodes:
            self.on_node[node].discard(place)

    def around(self, moment: Moment, own: int | None) -> tuple[float, float, float, float]:
        """Return the columns of a moment without its hour; `own` is the place of the run that begins then."""
        sharing = sorted(set().union(*(self.on_node.get(node, ()) for node in moment.nodes)) - {own})
        others = len(self.in_progress) - (own in self.in_progress)
        ranks = sum(_ranks_on(self.spans.runs[place], moment.nodes) for place in sharing)
        return float(len(sharing)), float(ranks), float(others), 0.0 if sharing else self._idle_seconds(moment)

    def _idle_seconds(self, moment: Moment) -> float:
        left = [self.left_ns[node] for node in moment.nodes if node in self.left_ns]
        idle = moment.at_ns - max(left, default=-NEVER_NS)
        return float(idle) * 1e-9 if idle <= LONGEST_NS else float(np.nan)


def neighbours(runs: Sequence[Run], moments: Sequence[Moment]) -> pd.DataFrame:
    """One row a moment: other runs in progress then, and the hour of the week (UTC, 0 is Monday's first).

    `neighbour_runs` and `neighbour_ranks` share a node with it, `system_runs` its system; `idle_seconds` is the time
    since the last run on its nodes ended, 0 while one is in progress and NaN beyond a week. A run is a neighbour for a
    week from its start, so that cost does not grow with the store.
    """
    rows = np.full((len(moments), len(COLUMNS)), np.nan)
    for system in {moment.system for moment in moments}:
        here = [run for run in runs if run.system == system]
        numbers = [number for number, moment in enumerate(moments) if moment.system == system]
        rows[numbers] = _of_system(here, [moments[number] for number in numbers])
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _of_system(runs: Sequence[Run], moments: Sequence[Moment]) -> Floats:
    """Rows of COLUMNS, (n_moments, n_columns), in the order given."""
    sweep = _Sweep(_Spans.of(runs))
    places = {run.run_id: place for place, run in enumerate(sweep.spans.runs)}
    rows = np.empty((len(moments), len(COLUMNS)))
    for number in sorted(range(len(moments)), key=lambda number: moments[number].at_ns):
        moment = moments[number]
        own = None if moment.run_id is None else places.get(moment.run_id)
        sweep.go_to(moment.at_ns)
        rows[number] = (*sweep.around(moment, own), _hour_of_week(moment.at_ns))
    return rows


def _ranks_on(run: Run, nodes: Sequence[str]) -> float:
    """The run's ranks on those nodes, if it spread them evenly."""
    if run.world_size is None:
        return 1.0
    return run.world_size * len(set(run.nodes) & set(nodes)) / len(set(run.nodes))


def _hour_of_week(at_ns: int) -> float:
    return float((at_ns / HOUR_NS + MONDAY_HOURS) % WEEK_HOURS)


def _is_placed(run: Run) -> bool:
    return run.started_ns is not None and (run.ended_ns is not None or run.state is RunState.RUNNING)
