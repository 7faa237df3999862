"""The difference of two runs' mean times of a step: parts that sum to it, each with an interval.

The mean is over steps and ranks, so that a part's time on one rank counts by the share of that rank.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crosswind.data.schema.answers.explanations import Interval
from crosswind.data.schema.answers.trace_difference import (
    DifferenceKind,
    DifferencePart,
    DifferenceSide,
    PartKind,
    RunsDifference,
)
from crosswind.data.schema.prediction import Floats
from crosswind.data.traces.trace import Flags, Integers, RankTrace
from crosswind.models.traces.difference.alignment import aligned, summed
from crosswind.models.traces.difference.owners import Part
from crosswind.models.traces.difference.paths import Paths, shared_names
from crosswind.models.traces.difference.step_parts import NAMED, PARTS, StepParts, step_parts
from crosswind.models.traces.difference.variation import Differences, differences
from crosswind.models.traces.difference.words import sentence

SECOND_NS = 1e9
MOSTLY = 0.75  # of a part's changes on all ranks, from which on it is one rank's
KINDS = {
    Part.WAIT: PartKind.WAIT,
    Part.TRANSFER: PartKind.TRANSFER,
    Part.MEMORY: PartKind.MEMORY,
    Part.HOST: PartKind.HOST,
    Part.IDLE: PartKind.IDLE,
}


def difference(first: Sequence[RankTrace], second: Sequence[RankTrace]) -> RunsDifference:
    """Return by what the steps of the second run's traces differ from those of the first one's.

    Raises: InvalidInputError as `ranks_of`.
    """
    paths, names = Paths(), shared_names(first, second)
    sides = [step_parts(traces, paths, names) for traces in (first, second)]
    return difference_of_steps(sides[0], sides[1], paths)


def difference_of_steps(first: StepParts, second: StepParts, paths: Paths) -> RunsDifference:
    """Return by what the steps of a second run, one at least, differ from those of a first."""
    both = _Both.of(first, second, paths)
    parts = both.parts(paths)
    answer = RunsDifference(
        sentence="",
        first=_side(first),
        second=_side(second),
        seconds=_interval(differences(*(run.time.mean(axis=1)[:, None] for run in (first, second)))),
        kinds=both.kinds_of([part.kind for part in parts]),
        parts=tuple(sorted(parts, key=lambda part: -abs(part.seconds.value))),
        unexplained=_interval(differences(*(_unexplained(run)[:, None] for run in (first, second)))),
        notes=_notes(first, second),
    )
    return replace(answer, sentence=sentence(answer))


@dataclass(frozen=True)
class _Both:
    """Two runs by the same keys, (n_keys,); times are (n_steps, n_ranks, n_keys), ns."""

    keys: Integers
    runs: tuple[StepParts, StepParts]
    is_in: tuple[Flags, Flags]
    names: tuple[Mapping[int, tuple[str, ...]], Mapping[int, tuple[str, ...]]]

    @classmethod
    def of(cls, first: StepParts, second: StepParts, paths: Paths) -> "_Both":
        """Align them."""
        own = aligned(first.keys, second.keys, paths)
        keys = np.unique(np.concatenate(own))
        runs = tuple(
            replace(run, keys=keys, parts=summed(run.parts, of, keys))
            for run, of in zip((first, second), own, strict=True)
        )
        names = tuple(_names(run, of) for run, of in zip((first, second), own, strict=True))
        is_in = tuple(np.isin(keys, of) for of in own)
        return cls(keys, (runs[0], runs[1]), (is_in[0], is_in[1]), (names[0], names[1]))

    def means(self) -> tuple[Floats, Floats]:
        """Return means over the ranks, (n_steps, n_keys) each."""
        return self.runs[0].parts.mean(axis=1), self.runs[1].parts.mean(axis=1)

    def parts(self, paths: Paths) -> list[DifferencePart]:
        """Return the part of each key."""
        means = self.means()
        changed = differences(*means)
        kinds, ranks = self._kinds(changed), self._ranks()
        one, other = (mean.mean(axis=0) / SECOND_NS for mean in means)
        return [
            DifferencePart(
                kinds[place],
                paths.names(key // PARTS),
                _interval(changed, place),
                float(one[place]),
                float(other[place]),
                *ranks[place],
                *(names.get(key, ()) for names in self.names),
            )
            for place, key in enumerate(self.keys.tolist())
        ]

    def kinds_of(self, kinds: Sequence[PartKind]) -> tuple[DifferenceKind, ...]:
        """Return the sums of parts by kind, in the order of the kinds."""
        number = np.array([list(PartKind).index(kind) for kind in kinds], np.int64)
        sums = [
            np.stack([mean[:, number == of].sum(axis=1) for of in range(len(PartKind))], 1) for mean in self.means()
        ]
        changed, counts = differences(*sums), np.bincount(number, minlength=len(PartKind)).tolist()
        rows = enumerate(zip(PartKind, counts, strict=True))
        return tuple(DifferenceKind(kind, _interval(changed, place), count) for place, (kind, count) in rows if count)

    def _kinds(self, changed: Differences) -> list[PartKind]:
        sure, rows = changed.is_sure.tolist(), zip(*(one.tolist() for one in self.is_in), strict=True)
        return [
            KINDS.get(Part(key % PARTS)) or _kind(one, other, value if is_sure else 0.0)
            for key, (one, other), value, is_sure in zip(
                self.keys.tolist(), rows, changed.value.tolist(), sure, strict=True
            )
        ]

    def _ranks(self) -> list[tuple[int | None, float | None]]:
        """Return of each key the rank on which most of its change is, and that change, seconds; None for several."""
        first, second = self.runs
        shared = sorted(set(first.ranks) & set(second.ranks))
        if len(shared) < 2 or set(first.ranks) != set(second.ranks):
            return [(None, None)] * len(self.keys)
        means = [run.parts[:, [run.ranks.index(rank) for rank in shared]].mean(axis=0) for run in self.runs]
        changes = (means[1] - means[0]) / SECOND_NS
        most = np.argmax(np.abs(changes), axis=0)
        largest, whole = changes[most, np.arange(len(self.keys))], np.abs(changes).sum(axis=0)
        is_mostly = (np.abs(largest) >= MOSTLY * whole) & (whole > 0)
        rows = zip(most.tolist(), largest.tolist(), is_mostly.tolist(), strict=True)
        return [(shared[place], value) if mostly else (None, None) for place, value, mostly in rows]


def _kind(is_in_first: bool, is_in_second: bool, value: float) -> PartKind:
    if is_in_first != is_in_second:
        return PartKind.ADDED if is_in_second else PartKind.GONE
    return PartKind.SLOWER if value > 0 else PartKind.FASTER if value < 0 else PartKind.ALIKE


def _names(run: StepParts, keys: Integers) -> dict[int, tuple[str, ...]]:
    names: dict[int, tuple[str, ...]] = {}
    for key, own in zip(keys.tolist(), run.keys.tolist(), strict=True):
        names[key] = tuple(dict.fromkeys((*names.get(key, ()), *run.names.get(own, ()))))[:NAMED]
    return names


def _side(run: StepParts) -> DifferenceSide:
    return DifferenceSide(run.ranks, len(run.time), float(run.time.mean()) / SECOND_NS, run.over)


def _unexplained(run: StepParts) -> Floats:
    return np.asarray((run.time - run.parts.sum(axis=2)).mean(axis=1))


def _interval(of: Differences, place: int = 0) -> Interval:
    value, low, high = (float(one[place]) / SECOND_NS for one in (of.value, of.low, of.high))
    return Interval(value, low, high)


def _notes(first: StepParts, second: StepParts) -> tuple[str, ...]:
    own = dict.fromkeys(f"{side}: {note}" for side, run in (("A", first), ("B", second)) for note in run.notes)
    notes = [note for note in own if f"B{note[1:]}" not in own or f"A{note[1:]}" not in own]
    notes += [note[3:] for note in own if note[0] == "A" and f"B{note[1:]}" in own]
    if first.over != second.over:
        notes.append(f"A's time is of the {first.over}, B's of the {second.over}: parts are hardly comparable")
    if len(first.ranks) != len(second.ranks):
        notes.append(f"A has {len(first.ranks)} ranks, B {len(second.ranks)}: means over ranks are compared")
    if max(len(first.time), len(second.time)) < 2:
        notes.append("one step each: no intervals")
    return tuple(notes)
