"""Seconds that a known delay of one rank cost its run, from the rows of its steps alone.

Injected: the delay a step x the steps that it was there for. But a rank that is delayed would have waited for another
one at times anyway, and sometimes comes before it still. So less is lost: in every segment the largest local time less
what would have been the largest without the delay. That counterfactual is what an interval should hold; the injected
seconds are given beside it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from crosswind.data.schema.run import Run
from crosswind.data.store.features import WARM_UP_STEPS

BEFORE = ("input_seconds", "compute_seconds")  # of a step's last collective, but for the tail of compute
AFTER = ("tail_seconds", "checkpoint_seconds", "other_seconds")  # as the lab's loop has it: this delays the next step
COLUMNS = (*BEFORE, *AFTER)
FAULT = re.compile(r"(?P<kind>\w+):(?P<rank>\d+):(?P<strength>[\d.]+)(?: from step (\d+))?(?: to step (\d+))?")


@dataclass(frozen=True)
class Delay:
    """A fault of one rank as its run's tag names it, in the steps from `first` to before `last`."""

    kind: str
    rank: int
    strength: float
    first: int
    last: int


def delays_of(run: Run, steps: int) -> Iterator[Delay]:
    """Every fault that the tag of a run of so many steps names."""
    for match in FAULT.finditer(run.tags["injected"]):
        kind, rank, strength, first, last = match.groups()
        yield Delay(kind, int(rank), float(strength), int(first or 0), int(last or steps))


def injected_and_lost(rows: pd.DataFrame, delay: Delay) -> tuple[float, float]:
    """Seconds that were injected, at a strength of ms a step, and that were lost, over the segments after warm-up.

    `rows` are the run's, one a step and rank.
    """
    compared = rows[rows["step"] >= WARM_UP_STEPS]
    grids = {column: compared.pivot_table(index="step", columns="rank", values=column) for column in COLUMNS}
    before = sum(grids[column].to_numpy() for column in BEFORE)
    after = sum(grids[column].to_numpy() for column in AFTER)
    tail = grids["tail_seconds"]
    local = before[1:] - tail.to_numpy()[1:] + after[:-1]
    is_there = (tail.index[1:] >= delay.first) & (tail.index[1:] < delay.last)
    seconds = np.where(is_there, delay.strength / 1000, 0.0)
    without = local.copy()
    without[:, list(tail.columns).index(delay.rank)] -= seconds
    return float(seconds.sum()), float((local.max(axis=1) - without.max(axis=1)).sum())
