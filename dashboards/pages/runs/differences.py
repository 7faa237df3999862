"""Differences between a run and others: what was set, what was installed, and the counters of their nodes."""

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from crosswind.dashboards.wording import quantity
from crosswind.data.lake.steps_summary import per_step, window_of
from crosswind.data.schema.answers.effects import CounterColumn
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run
from crosswind.data.store.features import WARM_UP_STEPS
from crosswind.data.store.store import Store
from crosswind.models.counters.rates import counters_during
from crosswind.models.explain.compare import facts_by_name

ALIKE = 0.01  # of the larger value, by which a counter may differ and count as the same
FAR_NS = 86_400_000_000_000
NOTHING = "-"  # in the place of a fact that a run does not have


@dataclass(frozen=True)
class FactDifference:
    """A fact that A does not share with B; `b` is what most runs of B have, `shared` how many have what A has."""

    name: str
    a: str
    b: str
    shared: int


@dataclass(frozen=True)
class CounterDifference:
    """A counter of the nodes during both; of several runs B is their median."""

    counter: CounterColumn
    a: float
    b: float

    @property
    def ratio(self) -> float | None:
        """A over B, where that says anything."""
        return self.a / self.b if self.a * self.b > 0 else None

    @property
    def relative(self) -> float:
        """The difference as a share of the sum, in [0, 1], which grows with the ratio in either direction."""
        size = abs(self.a) + abs(self.b)
        return abs(self.a - self.b) / size if size else 0.0

    @property
    def is_alike(self) -> bool:
        """Return whether the values hardly differ."""
        return abs(self.a - self.b) <= ALIKE * max(abs(self.a), abs(self.b))

    @property
    def a_words(self) -> str:
        """A's value with its unit."""
        return self._words(self.a)

    @property
    def b_words(self) -> str:
        """B's value with its unit."""
        return self._words(self.b)

    def _words(self, value: float) -> str:
        return quantity(value, self.counter.unit) + {"second": "/s", "byte": " a byte"}.get(self.counter.per, "")


@dataclass(frozen=True)
class Recorded:
    """Step times of A and of B's runs together, seconds, and the counters of both, those that differ most first."""

    a: Floats
    b: Floats
    counters: tuple[CounterDifference, ...]


def fact_differences(a: Run, others: Sequence[Run]) -> tuple[tuple[FactDifference, ...], int]:
    """Return what A does not have in common with most of the others, and the number of facts that it has."""
    own, theirs = facts_by_name(a), [facts_by_name(run) for run in others]
    names = sorted(own.keys() | {name for facts in theirs for name in facts})
    differing = []
    for name in names:
        values = Counter(facts.get(name, NOTHING) for facts in theirs)
        value, usual = own.get(name, NOTHING), values.most_common(1)[0][0]
        if value != usual:
            differing.append(FactDifference(name, value, usual, values[value]))
    return tuple(differing), len(names) - len(differing)


def recorded(store: Store, a_id: str, other_ids: tuple[str, ...]) -> Recorded:
    """Return what was recorded of A and of the others. Raises: NotFoundError, MalformedError."""
    with store.catalog.read() as session:
        a = session.runs.get(a_id)
        others = session.runs.some(other_ids)
    durations = [_durations(store, run) for run in (a, *others)]
    return Recorded(durations[0], np.concatenate([np.empty(0), *durations[1:]]), _counters(store, a, others))


def _durations(store: Store, run: Run) -> Floats:
    """Return the seconds of each step after warm-up, those of its slowest rank."""
    steps = per_step(store.lake, run.run_id, window_of(run, WARM_UP_STEPS))
    return steps["slowest_seconds"].to_numpy(np.float64)


def _counters(store: Store, a: Run, others: Sequence[Run]) -> tuple[CounterDifference, ...]:
    own: dict[CounterColumn, float] = {}
    theirs: dict[CounterColumn, list[float]] = {}
    for run, counter, value in _values(store, [a, *others]):
        if run.run_id == a.run_id:
            own[counter] = value
        else:
            theirs.setdefault(counter, []).append(value)
    both = [CounterDifference(one, own[one], statistics.median(theirs[one])) for one in own.keys() & theirs.keys()]
    return tuple(sorted(both, key=lambda one: (-one.relative, one.counter.name)))


def _values(store: Store, runs: Sequence[Run]) -> Iterator[tuple[Run, CounterColumn, float]]:
    """Yield each run's value of each counter; files between runs that are far apart in time are not opened."""
    for part in _close(runs):
        for counter, values in counters_during(store.lake, part).items():
            yield from ((part[place], counter, value) for place, value in enumerate(values) if math.isfinite(value))


def _close(runs: Sequence[Run]) -> list[list[Run]]:
    """Return the runs in the order of time, in parts that are far from each other."""
    parts: list[list[Run]] = []
    for run in sorted(runs, key=lambda run: run.started_ns or 0):
        if parts and (run.started_ns or 0) - (parts[-1][-1].started_ns or 0) < FAR_NS:
            parts[-1].append(run)
        else:
            parts.append([run])
    return parts
