"""Ranking of the fleet by comparing ranks of the same run: nodes and switches, then devices within their nodes.

The ranks of a synchronous run share all that slows the whole run; they differ by their place in the program, their node
and their device. Ranks on one node count once, for a disturbance of a node affects all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import sparse

from crosswind.data.schema.answers.stragglers import SLOWER, SURE, ComparisonBasis, PeerKind, RankedPeer
from crosswind.data.schema.prediction import Floats
from crosswind.models.stragglers.effects import Codes, Effects, Factor, crossed_effects
from crosswind.models.stragglers.levels import Levels, Since, changes_within, levels_of
from crosswind.models.stragglers.ranking import FEWEST_RUNS

NODE, DEVICE, PLACE, SWITCH = (str(kind) for kind in PeerKind)
INTERVAL = 1.645  # standard errors either side: 90 %
CONTRAST_MIN = 0.25  # in observations, below which there was nothing to compare with


def ranked_by_ranks(
    table: pd.DataFrame, boots: Codes, switches: Mapping[str, str]
) -> tuple[list[RankedPeer], float | None, int]:
    """Return the ranking, the noise of a node from run to run (log), and the number of runs compared.

    table: as `local_times`; boots: of each row, as `boots_at`; switches: of each node, where known.
    """
    several = table.groupby("run_id")["node"].transform("nunique") > 1
    nodes = _NodeRuns(table[several], boots[several.to_numpy()], switches)
    ranked, noise = nodes.ranked() if len(nodes) else ([], None)
    ranked += _devices(table)
    return ranked, noise, int(table.loc[several, "run_id"].nunique())


class _NodeRuns:
    """One observation for each node of each run."""

    def __init__(self, table: pd.DataFrame, boots: Codes, switches: Mapping[str, str]) -> None:
        rows = table.assign(boot=boots).reset_index(drop=True)
        by = rows.groupby(["run_id", "system", "node"], sort=False)
        self.row_of = np.asarray(by.ngroup(), np.int64)
        self.table = by.agg(
            log_local=("log_local", "mean"), started_ns=("started_ns", "first"), boot=("boot", "max")
        ).reset_index()
        self.node, self.nodes = _numbered(self.table["system"], self.table["node"])
        self.place, self.places = _numbered(rows["system"], rows["place"])
        switch = self.table["node"].map(dict(switches))
        self.switch, self.switches = _numbered(self.table["system"], switch)
        self.started_ns = self.table["started_ns"].to_numpy(np.int64)
        self.run = pd.factorize(self.table["run_id"])[0].astype(np.int64)

    def __len__(self) -> int:
        return len(self.table)

    def ranked(self) -> tuple[list[RankedPeer], float]:
        """Rank nodes, switches and places, and return the noise."""
        boots = self.table["boot"].to_numpy(np.int64)
        levels = levels_of(self.node, self.started_ns, boots)
        effects = self._effects(levels)
        changed = changes_within(levels, self.started_ns, self._own(effects, levels), effects.noise)
        if changed.any():
            levels = levels_of(self.node, self.started_ns, boots, changed)
            effects = self._effects(levels)
        ranked = _ranked_levels(effects, levels, self.nodes, np.bincount(levels.of_row))
        ranked += self._ranked_kind(PeerKind.SWITCH, effects, self.switches, self.switch)
        ranked += self._ranked_kind(PeerKind.PLACE, effects, self.places, self.place)
        return ranked, effects.noise

    def _effects(self, levels: Levels) -> Effects:
        factors = [Factor.of(NODE, levels.of_row, len(levels)), self._shared_places()]
        if len(self.switches):
            factors.append(Factor.of(SWITCH, self.switch, len(self.switches)))
        return crossed_effects(self.table["log_local"].to_numpy(np.float64), self.run, factors)

    def _shared_places(self) -> Factor:
        """The factor of places: a node in a run has the mean effect of the places it had."""
        size = np.bincount(self.row_of, minlength=len(self))
        weights = 1 / size[self.row_of]
        shape = (len(self), len(self.places))
        return Factor(PLACE, sparse.csr_matrix((weights, (self.row_of, self.place)), shape=shape))

    def _own(self, effects: Effects, levels: Levels) -> Floats:
        return effects.partial - effects.fitted + effects.values[NODE][levels.of_row]

    def _ranked_kind(self, kind: PeerKind, effects: Effects, names: pd.DataFrame, codes: Codes) -> list[RankedPeer]:
        if not len(names):
            return []
        runs = np.bincount(codes[codes >= 0], minlength=len(names))
        return _ranked_plain(kind, effects, names, runs)


def _devices(table: pd.DataFrame) -> list[RankedPeer]:
    """Rank devices against the others of their node in the same run."""
    with_device = table[table["device"].notna()]
    several = with_device.groupby(["run_id", "node"])["device"].transform("nunique") > 1
    rows = with_device[several]
    if rows.empty:
        return []
    device, devices = _numbered(rows["system"], rows["node"] + " " + rows["device"])
    place, places = _numbered(rows["system"], rows["place"])
    group = np.asarray(rows.groupby(["run_id", "node"], sort=False).ngroup(), np.int64)
    factors = [Factor.of(DEVICE, device, len(devices)), Factor.of(PLACE, place, len(places))]
    effects = crossed_effects(rows["log_local"].to_numpy(np.float64), group, factors)
    return _ranked_plain(PeerKind.DEVICE, effects, devices, np.bincount(device, minlength=len(devices)))


def _numbered(system: pd.Series, names: pd.Series) -> tuple[Codes, pd.DataFrame]:
    """A number for each pair, below 0 for a missing name, and the pairs in the order of their numbers."""
    name, distinct = pd.factorize(names)
    both = pd.factorize(system)[0] * (len(distinct) + 1) + name
    codes = np.asarray(pd.factorize(pd.Series(both).where(name >= 0))[0], np.int64)
    first = pd.Series(codes).drop_duplicates()
    rows = first[first >= 0].sort_values().index.to_numpy()
    pairs = pd.DataFrame({"system": system.to_numpy()[rows], "name": names.to_numpy()[rows]})
    return codes, pairs


def _ranked_plain(kind: PeerKind, effects: Effects, names: pd.DataFrame, runs: Codes) -> list[RankedPeer]:
    return list(
        ranked_effects((kind, ComparisonBasis.RANKS), effects, names, rows=np.arange(len(names)), runs=runs).values()
    )


def _ranked_levels(effects: Effects, levels: Levels, names: pd.DataFrame, runs: Codes) -> list[RankedPeer]:
    newest = np.flatnonzero(levels.is_newest)
    own, ranked = names.iloc[levels.thing[newest]], []
    for row, ranked_node in ranked_effects(
        (PeerKind.NODE, ComparisonBasis.RANKS), effects, own, rows=newest, runs=runs
    ).items():
        has_older = row > 0 and levels.thing[row - 1] == levels.thing[row]
        step = effects.values[NODE][row - 1] - effects.values[NODE][row] if has_older else None
        was = None if step is None else ranked_node.ratio * float(np.exp(step))
        ranked.append(
            replace(ranked_node, since_ns=int(levels.since_ns[row]), since=str(levels.since[row]), was_ratio=was)
        )
    return ranked


def ranked_effects(
    what: tuple[PeerKind, ComparisonBasis], effects: Effects, names: pd.DataFrame, *, rows: Codes, runs: Codes
) -> dict[int, RankedPeer]:
    """Rank the effects in `rows`, named in the same order; by row, those with enough contrast."""
    kind = what[0]
    values, errors = effects.values[kind], effects.errors[kind]
    centre = np.asarray(pd.Series(values[rows]).groupby(_peers(kind, names)).transform("median"))
    chances = effects.chance_above(kind, float(np.log1p(SLOWER)), rows, centre)
    pairs = names[["name", "system"]].itertuples(index=False)
    return {
        row: _ranked(what, name, (values[row] - middle, errors[row], chance), int(runs[row]))
        for row, name, middle, chance in zip(rows.tolist(), pairs, centre, chances, strict=True)
        if effects.informative[kind][row] >= CONTRAST_MIN
    }


def _peers(kind: PeerKind, names: pd.DataFrame) -> list[str]:
    """Return the group of each name, with whose median it is compared: its program's places, else its system."""
    of_program = names["name"].str.rpartition(", rank")[0] if kind is PeerKind.PLACE else ""
    return list(names["system"] + "/" + of_program)


def _ranked(
    what: tuple[PeerKind, ComparisonBasis], name: Sequence[str], effect: tuple[float, float, float], runs: int
) -> RankedPeer:
    """One entry of the ranking; an effect is its value (log), standard error, and chance to be slower."""
    value, error, chance = (float(part) for part in effect)
    ratio, low, high = (float(np.exp(value + by * error)) for by in (0.0, -INTERVAL, INTERVAL))
    is_named = chance >= SURE and runs >= FEWEST_RUNS
    start = (None, str(Since.FIRST), None)
    return RankedPeer(what[0], str(name[0]), str(name[1]), ratio, low, high, chance, is_named, runs, *start, what[1])
