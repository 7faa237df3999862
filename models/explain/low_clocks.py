"""The share of a run's time that its clocks cost, which were lower than in other runs of its system."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from crosswind.data.schema.run import Run
from crosswind.models.explain.segments import COLUMNS, Segments

COMPUTE, CLOCK_LOST = COLUMNS.index("compute"), COLUMNS.index("clock_lost")


def of_low_clocks(runs: Sequence[Run], segments: Mapping[str, Segments]) -> Iterator[tuple[str, float]]:
    """Run id, and the largest share by which one of its clocks lay below the highest of its system's runs.

    NaN where no clock is known.
    """
    recorded = [run for run in runs if run.run_id in segments]
    hertz = pd.DataFrame([segments[run.run_id].clocks for run in recorded])
    highest = hertz.groupby([run.system for run in recorded]).transform("max") if recorded else hertz
    lost = 1 - hertz / highest.where(highest > 0)
    yield from zip((run.run_id for run in recorded), lost.max(axis=1).to_list(), strict=True)


def put_low_clock(segments: Segments, lost: float) -> None:
    """Writes down the seconds that this share is: of the rank that came last, and of each rank while it did."""
    segments.values[:, CLOCK_LOST] = segments.values[:, COMPUTE] * lost
    if len(segments.of_ranks):
        came_last = np.array(sorted(segments.work))[:, None] == segments.culprits
        segments.of_ranks[:, CLOCK_LOST] = came_last @ segments.values[:, CLOCK_LOST] / len(segments.values)
