"""The steps of a run in parts: how long each rank spends in each part of each step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from crosswind.data.traces.naming import operation_of
from crosswind.data.traces.trace import NONE, Integers, Kind, RankTrace
from crosswind.models.traces.collectives import Collectives, collectives
from crosswind.models.traces.difference.owners import Owned, Part, owned
from crosswind.models.traces.difference.paths import NOTHING, Paths, paths_of
from crosswind.models.traces.difference.windows import windows
from crosswind.models.traces.ranks import ranks_of

PARTS = len(Part)
NAMED = 3  # kernels of a part


@dataclass(frozen=True)
class StepParts:
    """Times of steps by rank and part, (n_steps, n_ranks, n_keys); what `time` has over their sum is unexplained."""

    ranks: tuple[int, ...]
    keys: Integers  # (n_keys,): path * PARTS + part
    parts: np.ndarray
    time: np.ndarray  # (n_steps, n_ranks), of whole steps
    over: str  # "device", "host", or "probe"
    names: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # of what takes longest in a part, by key
    notes: tuple[str, ...] = ()

    def of_steps(self, chosen: slice) -> "StepParts":
        """Return the chosen steps alone."""
        facts = (self.over, self.names, self.notes)
        return StepParts(self.ranks, self.keys, self.parts[chosen], self.time[chosen], *facts)


def step_parts(traces: Sequence[RankTrace], paths: Paths, names: dict[str, str]) -> StepParts:
    """Return the steps of a run, as many as each rank has. Raises: InvalidInputError as `ranks_of`."""
    ranks, matched = ranks_of(traces), collectives(traces)
    rows = [_of_rank(trace, _transfers(matched, column, trace), paths, names) for column, trace in enumerate(traces)]
    count = min(len(one.time) for one in rows)
    keys = np.unique(np.concatenate([one.keys for one in rows]))
    parts = np.zeros((count, len(rows), len(keys)), np.int64)
    for column, one in enumerate(rows):
        parts[:, column, np.searchsorted(keys, one.keys)] = one.parts[:count]
    time = np.stack([one.time[:count] for one in rows], axis=1)
    over = "device" if any(one.over == "device" for one in rows) else "host"
    notes = [*matched.notes, *(note for one in rows for note in one.notes), *_unequal(rows, count), *_alone(traces)]
    return StepParts(ranks, keys, parts, time, over, _merged([one.names for one in rows]), tuple(dict.fromkeys(notes)))


@dataclass(frozen=True)
class _RankParts:
    """The same of one rank: `parts` is (n_steps, n_keys), `time` (n_steps,); `names` map (key, name) to ns."""

    keys: Integers
    parts: Integers
    time: Integers
    over: str
    names: Mapping[tuple[int, str], int]
    notes: tuple[str, ...]


def _of_rank(trace: RankTrace, transfer_ns: Integers, paths: Paths, names: dict[str, str]) -> _RankParts:
    of = windows(trace)
    over = "device" if np.any(trace.events.kind <= Kind.COPY) else "host"
    pieces = owned(trace.events, of.edges, transfer_ns)
    keys = _keys(pieces, _named_paths(trace, paths, names))
    kinds, place = np.unique(keys, return_inverse=True)
    count = len(of.edges) - 1
    sums = np.bincount(pieces.window * len(kinds) + place, pieces.ns, count * len(kinds))
    parts = sums.astype(np.int64).reshape(count, len(kinds))
    return _RankParts(kinds, parts, np.diff(of.edges), over, _work(trace, pieces, keys), of.notes)


def _keys(pieces: Owned, path: Integers) -> Integers:
    return np.asarray(np.append(path, NOTHING)[pieces.event] * PARTS + pieces.part)


def _named_paths(trace: RankTrace, paths: Paths, names: dict[str, str]) -> Integers:
    """Return the path of each event, with collectives by their operation; work without a path has its own name's."""
    path, events = paths_of(trace, paths, names), trace.events
    kinds = (Kind.KERNEL, Kind.COPY, Kind.COLLECTIVE, Kind.MESSAGE, Kind.USEFUL, Kind.IO)
    rows = np.flatnonzero((path == NOTHING) & np.isin(events.kind, np.array(kinds, np.uint8)))
    pairs, place = np.unique(events.name[rows].astype(np.int64) * len(Kind) + events.kind[rows], return_inverse=True)
    new = [paths.of(NOTHING, _own_name(trace, *divmod(pair, len(Kind)))) for pair in pairs.tolist()]
    path[rows] = np.array(new, np.int64)[place] if len(rows) else path[rows]
    return path


def _own_name(trace: RankTrace, name: int, kind: int) -> str:
    is_collective = kind in (Kind.COLLECTIVE, Kind.MESSAGE)
    return operation_of(trace.names[name]) if is_collective else trace.names[name]


def _work(trace: RankTrace, pieces: Owned, keys: Integers) -> dict[tuple[int, str], int]:
    """Return the time of a device's work by key and name."""
    is_work = (pieces.event != NONE) & np.isin(pieces.part, (Part.WORK, Part.WAIT, Part.TRANSFER, Part.MEMORY))
    is_work[is_work] = trace.events.kind[pieces.event[is_work]] <= Kind.COPY
    count = len(trace.names) or 1
    both, place = np.unique(keys[is_work] * count + trace.events.name[pieces.event[is_work]], return_inverse=True)
    sums = np.bincount(place, pieces.ns[is_work], len(both)).astype(np.int64)
    return {(one // count, trace.names[one % count]): ns for one, ns in zip(both.tolist(), sums.tolist(), strict=True)}


def _merged(ranks: Sequence[Mapping[tuple[int, str], int]]) -> dict[int, tuple[str, ...]]:
    """Return the names of the work that takes longest over all ranks, by key."""
    totals: dict[tuple[int, str], int] = {}
    for names in ranks:
        for pair, ns in names.items():
            totals[pair] = totals.get(pair, 0) + ns
    ordered = sorted(totals, key=lambda pair: (pair[0], -totals[pair]))
    return {key: tuple(name for _, name in rows)[:NAMED] for key, rows in groupby(ordered, key=lambda pair: pair[0])}


def _transfers(matched: Collectives, column: int, trace: RankTrace) -> Integers:
    """Return the transfer of each collective of a rank, (n_events,); all of its time where no other rank is in it."""
    transfer = trace.events.duration_ns.copy()
    event = matched.event[:, column]
    is_in = event != NONE
    transfer[event[is_in]] = matched.transfer_ns[is_in]
    return transfer


def _unequal(rows: Sequence[_RankParts], count: int) -> list[str]:
    most = max(len(one.time) for one in rows)
    return [f"ranks have {count} to {most} steps: the first {count} of each are compared"] if most > count else []


def _alone(traces: Sequence[RankTrace]) -> list[str]:
    return ["one rank only: waits for others count as transfer"] if len(traces) == 1 else []
