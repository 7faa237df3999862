"""Paths of operators: the ranges of the host around an event, from the outermost in, by names that two runs share."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from crosswind.data.traces.trace import NONE, Events, Integers, Kind, RankTrace
from crosswind.models.traces.launches import launches
from crosswind.models.traces.nesting import parents, roots

NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\d+")
RANGES = (Kind.OPERATOR, Kind.ANNOTATION)  # of which paths are made
ASIDE = (Kind.STEP, Kind.FRAME)  # on the host, and in no path
NOTHING = 0  # the empty path


@dataclass
class Paths:
    """Numbers paths, the empty one first, whatever rank and run they come from."""

    parent: list[int] = field(default_factory=lambda: [NONE])
    name: list[str] = field(default_factory=lambda: [""])
    is_operator: list[bool] = field(default_factory=lambda: [False])  # of the innermost range
    _codes: dict[tuple[int, str], int] = field(default_factory=dict)

    def of(self, parent: int, name: str, *, is_operator: bool = False) -> int:
        """Return the number of a path by that of the one around it and its last name."""
        code = self._codes.get((parent, name))
        if code is None:
            code = self._codes[parent, name] = len(self.name)
            self.parent.append(parent)
            self.name.append(name)
            self.is_operator.append(is_operator)
        return code

    def names(self, code: int) -> tuple[str, ...]:
        """Return the names of a path, the outermost first."""
        names: list[str] = []
        while code > NOTHING:
            names.append(self.name[code])
            code = self.parent[code]
        return tuple(reversed(names))


def shared_names(*runs: Sequence[RankTrace]) -> dict[str, str]:
    """Return each name of a range by which runs are compared: without numbers where these differ from run to run.

    Names that differ by numbers alone are one family. It keeps its names where all runs have the same ones or there is
    but one, and so do operators that a library registered ("aten::conv2d").
    """
    families: list[dict[str, set[str]]] = [defaultdict(set) for _ in runs]
    for family, traces in zip(families, runs, strict=True):
        for name in {name for trace in traces for name in _range_names(trace)}:
            family[NUMBERS.sub("#", name)].add(name)
    names: dict[str, str] = {}
    for short in {short for family in families for short in family}:
        members = [family[short] for family in families]
        is_same = all(one == members[0] for one in members) or len(set.union(*members)) == 1
        names |= {name: name if is_same or _is_registered(name) else short for one in members for name in one}
    return names


def paths_of(trace: RankTrace, paths: Paths, names: dict[str, str]) -> Integers:
    """Return the path of each event, (n_events,): of a range its own, else that of the innermost range around it.

    Work of a device has the path of its launch, else of the operator whose id it states; NOTHING without either.
    """
    events = trace.events
    host = np.flatnonzero((events.kind > Kind.COPY) & ~np.isin(events.kind, np.array(ASIDE, np.uint8)))
    is_range = np.isin(events.kind[host], np.array(RANGES, np.uint8))
    around = parents(events, host)
    nearest = np.append(roots(around, is_range), NONE)
    enclosing = nearest[np.append(around, NONE)]  # of each of host's, and NONE at the end
    codes = _codes(trace, (host, is_range, enclosing[:-1]), paths, names)
    path: Integers = np.zeros(len(events), np.int64)
    path[host] = codes[nearest[:-1]]
    _of_device(events, path)
    return path


def _codes(
    trace: RankTrace, ranges: tuple[Integers, np.ndarray, Integers], paths: Paths, names: dict[str, str]
) -> Integers:
    """Return the paths of ranges, (n_host + 1,), level by level; NOTHING for all else."""
    host, is_range, enclosing = ranges
    codes: Integers = np.full(len(host) + 1, NOTHING, np.int64)
    level = np.flatnonzero(is_range & (enclosing == NONE))
    inner = np.flatnonzero(is_range & (enclosing != NONE))
    while len(level):
        name = trace.events.name[host[level]].astype(np.int64)
        above = codes[enclosing[level]]
        pairs, place = np.unique(above * len(trace.names) + name, return_inverse=True)
        rows = np.zeros(len(pairs), np.int64)
        rows[place] = host[level]
        split = (divmod(pair, len(trace.names)) for pair in pairs.tolist())
        kinds = trace.events.kind[rows].tolist()
        new = [
            paths.of(parent, names[trace.names[code]], is_operator=kind == Kind.OPERATOR)
            for (parent, code), kind in zip(split, kinds, strict=True)
        ]
        codes[level] = np.array(new, np.int64)[place]
        is_next = codes[enclosing[inner]] != NOTHING
        level, inner = inner[is_next], inner[~is_next]
    return codes


def _of_device(events: Events, path: Integers) -> None:
    """Set the paths of a device's work."""
    pairs = launches(events)
    stated = events.operator[pairs.device]
    path[pairs.device] = np.where(pairs.call == NONE, NOTHING, path[pairs.call])
    rows = np.flatnonzero((events.kind == Kind.OPERATOR) & (events.operator != NONE))
    if len(rows):
        rows = rows[np.argsort(events.operator[rows], kind="stable")]
        last = rows[np.maximum(np.searchsorted(events.operator[rows], stated, side="right") - 1, 0)]
        is_stated = (path[pairs.device] == NOTHING) & (stated != NONE) & (events.operator[last] == stated)
        path[pairs.device[is_stated]] = path[last[is_stated]]


def _range_names(trace: RankTrace) -> Iterable[str]:
    is_range = np.isin(trace.events.kind, np.array(RANGES, np.uint8))
    return (trace.names[code] for code in np.unique(trace.events.name[is_range]).tolist())


def _is_registered(name: str) -> bool:
    return "::" in name and "0x" not in name
