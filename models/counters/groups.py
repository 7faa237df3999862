"""Samples of nodes during runs, and sums over them by run and group of devices."""

import re
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats

Ints = NDArray[np.int64]
COVERAGE_MIN = 0.5  # of a run's time, on a node
NUMBERS = re.compile(r"\b[0-9a-f]+(?=:)|\d+")  # handles of queues and addresses on a bus are hexadecimal
NANOSECONDS = 1e9


@dataclass(frozen=True)
class Groups:
    """Samples in the order of run, group of devices, node and device, and where each of these begins.

    `sample` are places of rows. A device begins among the samples, a node among the devices, a run among the nodes:
    `run`, a number, and `group`, a place in `names`, have one entry each. `seconds` is the length of the run, by node.
    """

    sample: Ints
    devices: Ints
    nodes: Ints
    runs: Ints
    run: Ints
    group: Ints
    names: tuple[str, ...]
    seconds: Floats

    def rates(self, growth: Floats, seconds: Floats) -> Floats:
        """Return by run and group what its devices grew by a second on the worst node, NaN where too little is known.

        growth, seconds: by row, NaN and 0 where missing.
        """
        if not len(self.sample):
            return np.empty(0)
        of_node = np.add.reduceat(np.add.reduceat(np.nan_to_num(growth)[self.sample], self.devices), self.nodes)
        covered = np.maximum.reduceat(np.add.reduceat(seconds[self.sample], self.devices), self.nodes)
        is_covered = (covered >= COVERAGE_MIN * self.seconds) & (covered > 0)
        rate = np.divide(of_node, covered, out=np.full(len(of_node), np.nan), where=is_covered)
        return np.asarray(np.fmax.reduceat(rate, self.runs))

    def means(self, values: Floats) -> Floats:
        """Return by run and group the mean over its devices, of all nodes, of the mean over time; NaN is missing."""
        if not len(self.sample):
            return np.empty(0)
        return _means(_means(values[self.sample], self.devices), self.nodes[self.runs])


def _means(values: Floats, begins: Ints) -> Floats:
    counts = np.add.reduceat(~np.isnan(values), begins, dtype=np.int64)
    sums = np.add.reduceat(np.where(np.isnan(values), 0.0, values), begins)
    return np.asarray(np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0))


@dataclass(frozen=True)
class Sampled:
    """Pairs of a place, which is a run on a node, and a row that was sampled there meanwhile."""

    places: pd.DataFrame
    ts_ns: Ints
    device: Ints  # by row
    group: Ints  # by device
    names: tuple[str, ...]
    place: Ints
    row: Ints

    @classmethod
    def of(cls, rows: pa.Table, places: pd.DataFrame) -> Self:
        """Return the pairs of rows with columns node, device and ts_ns, and of places."""
        ts_ns = rows["ts_ns"].to_numpy()
        node, nodes = _coded(rows, "node")
        device, devices = _coded(rows, "device")
        group, names = pd.factorize(np.array([NUMBERS.sub("*", name) for name in devices], object))
        order = np.lexsort((ts_ns, node))
        codes = {name: code for code, name in enumerate(nodes)}
        at = np.array([codes.get(name, -1) for name in places["at_node"]], np.int64)
        begins, ends = (_reached(node[order], ts_ns[order], at, places[side].to_numpy()) for side in EDGES)
        counts = ends - begins
        place = np.repeat(np.arange(len(places)), counts)
        row = order[np.arange(len(place)) + np.repeat(begins - (np.cumsum(counts) - counts), counts)]
        return cls(places, ts_ns, device, group, tuple(map(str, names)), place, row)

    def groups(self, before_ns: Ints | None = None) -> Groups:
        """Return the samples in groups; of rows about the time `before_ns` up to them those that lie in the run."""
        place, row, run = self.place, self.row, self.places["run"].to_numpy()
        if before_ns is not None:
            begins_within = self.ts_ns[row] - before_ns[row] >= self.places["from_ns"].to_numpy()[place]
            place, row = place[begins_within], row[begins_within]
        device = self.device[row]
        order = np.lexsort((device, place, self.group[device], run[place]))
        place, row, device = place[order], row[order], device[order]
        group = self.group[device]
        devices = _changes(run[place], group, place, device)
        nodes = _changes(run[place], group, place, among=devices)
        runs = _changes(run[place], group, among=devices[nodes])
        first, of_node = devices[nodes[runs]], place[devices[nodes]]
        length = (self.places["until_ns"] - self.places["from_ns"]).to_numpy()[of_node] / NANOSECONDS
        return Groups(row, devices, nodes, runs, run[place[first]], group[first], self.names, length)


EDGES = "from_ns", "until_ns"


def _coded(rows: pa.Table, name: str) -> tuple[Ints, list[str]]:
    """Return a number for each row, and the values that they stand for; a missing one is empty."""
    encoded = rows[name].combine_chunks().fill_null("").dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def _reached(node: Ints, ts_ns: Ints, at: Ints, time_ns: Ints) -> Ints:
    """Return for each place the first of the rows, sorted by node and time, on its node at this time or later."""
    begins, ends = np.searchsorted(node, at, "left"), np.searchsorted(node, at, "right")
    within = [np.searchsorted(ts_ns[begin:end], at_ns) for begin, end, at_ns in zip(begins, ends, time_ns, strict=True)]
    return np.asarray(begins + np.array(within, np.int64))


def _changes(*columns: Ints, among: Ints | None = None) -> Ints:
    """Return the places, 0 first, at which any of the columns is another than before; `among` are rows looked at."""
    size = len(columns[0]) if among is None else len(among)
    has_changed = np.ones(size, np.bool_)
    has_changed[1:] = False
    for column in columns:
        looked_at = column if among is None else column[among]
        has_changed[1:] |= looked_at[1:] != looked_at[:-1]
    return np.flatnonzero(has_changed)
