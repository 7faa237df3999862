"""Levels of nodes over time: their observations cut at boots and at lasting changes of their effect.

Every level has an effect of its own, so that a repair or a boot starts afresh. A quick test of all nodes at once, the
largest standardised step of their cumulative sums, chooses those whose changes are then placed exactly.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats
from crosswind.models.forecast.change_points import segments
from crosswind.models.forecast.level_changes import NOTICED, SHORTEST
from crosswind.models.stragglers.effects import CLIPPED, Codes

STEP_MIN = 16.0  # squared deviations; chance alone gives as much at one place in some ten thousand


class Since(StrEnum):
    """The event that a level began with."""

    FIRST = "first run"
    BOOT = "boot"
    CHANGE = "change"


@dataclass(frozen=True)
class Levels:
    """Levels of things observed over time: `of_row` (n_rows,) numbers the level of each row.

    The other arrays are (n_levels,), a thing's levels in the order of time: the number of the thing, the start of the
    level's first run, and the event that the level began with.
    """

    of_row: Codes
    thing: Codes
    since_ns: Codes
    since: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.thing)

    @property
    def is_newest(self) -> NDArray[np.bool_]:
        """Return whether each level is the last one of its thing, (n_levels,)."""
        return np.append(self.thing[1:] != self.thing[:-1], True)[: len(self)]


def levels_of(things: Codes, started_ns: Codes, boots: Codes, changed: Codes | None = None) -> Levels:
    """Levels by thing and boot; `changed` (n_rows,) counts the changes before each row, None for none."""
    changed = np.zeros_like(things) if changed is None else changed
    table = pd.DataFrame({"thing": things, "boot": boots, "changed": changed, "started_ns": started_ns})
    by = ["thing", "boot", "changed"]
    of_row = table.groupby(by).ngroup().to_numpy()
    levels = table.groupby(by)["started_ns"].min().reset_index()
    is_first = levels["thing"].ne(levels["thing"].shift())
    is_boot = levels["boot"].ne(levels["boot"].shift())
    since = np.where(is_first, Since.FIRST, np.where(is_boot, Since.BOOT, Since.CHANGE)).astype(np.str_)
    thing, since_ns = levels["thing"].to_numpy(np.int64), levels["started_ns"].to_numpy(np.int64)
    return Levels(np.asarray(of_row, np.int64), thing, since_ns, since)


def changes_within(levels: Levels, started_ns: Codes, own: Floats, noise: float) -> Codes:
    """Number of lasting changes within its level before each row, (n_rows,).

    own: the row's observation of its thing's effect, in logarithms; noise: its usual deviation.
    """
    order = np.lexsort((started_ns, levels.of_row))
    level, values = levels.of_row[order], own[order]
    first = np.flatnonzero(np.append(True, level[1:] != level[:-1]))
    end = np.append(first[1:], len(level))
    suspect = np.flatnonzero(_largest_step(values, first, end, noise) > STEP_MIN)
    changed = np.zeros(len(level), dtype=np.int64)
    for number in suspect:
        begin, stop = first[number], end[number]
        for place in _kept(values[begin:stop]):
            changed[begin + place : stop] += 1
    counts = np.empty_like(changed)
    counts[order] = changed
    return counts


def _largest_step(values: Floats, first: Codes, end: Codes, noise: float) -> Floats:
    """The largest squared standardised step within each block of values, (n_blocks,)."""
    sizes = end - first
    count = np.repeat(sizes, sizes)
    block = np.repeat(np.arange(len(first)), sizes)
    middle = pd.Series(values).groupby(block).transform("median").to_numpy()
    clipped = np.clip(values - middle, -CLIPPED * noise, CLIPPED * noise)
    summed = np.cumsum(clipped)
    before = np.where(first > 0, summed[np.maximum(first - 1, 0)], 0.0)
    so_far = summed - np.repeat(before, sizes)
    total = np.repeat(so_far[end - 1], sizes)
    place = np.arange(len(values)) - np.repeat(first, sizes) + 1
    inside = (place >= SHORTEST) & (count - place >= SHORTEST)
    spread = np.maximum(place * (count - place) / count, 1) * noise**2
    stepped = np.where(inside, (so_far - place * total / count) ** 2 / spread, 0.0)
    return np.asarray(np.maximum.reduceat(stepped, first))


def _kept(values: Floats) -> list[int]:
    """Return the places where the values change their level by NOTICED or more."""
    pieces = segments(np.exp(values), shortest=SHORTEST)
    kept, level = [], pieces[0].level
    for piece in pieces[1:]:
        if abs(np.log(piece.level / level)) >= np.log1p(NOTICED):
            kept.append(piece.first)
            level = piece.level
    return kept
