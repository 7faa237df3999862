"""Files of the lake that may hold rows of a time, or of a run.

A part's name comes from what is in it, so names stay the same for as long as nothing is stored that might change an
answer about that time, and compaction changes no rows. What was computed may be kept under those names.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from crosswind.data.lake.lake import Lake
from crosswind.data.lake.parts import ALWAYS, Span, compacted_span, held
from crosswind.data.schema.errors import MalformedError

PARTS_KEPT = 100_000  # extents in memory, of some hundred bytes


@dataclass(frozen=True)
class Extent:
    """The nanoseconds of a part's first and last row; its runs, or the first and the last of their names."""

    span: Span
    runs: frozenset[str] | tuple[str, str] | None

    def may_hold(self, run_id: str) -> bool:
        """Return whether rows of the run may be among its rows."""
        if isinstance(self.runs, tuple):
            return self.runs[0] <= run_id <= self.runs[1]
        return self.runs is None or run_id in self.runs


@lru_cache(maxsize=PARTS_KEPT)
def extent_of(part: Path) -> Extent:
    """Return what the name and the footer say; the rest may be damaged. Raises: MalformedError, OSError."""
    span = compacted_span(part.name)
    if span is not None:
        return Extent(span, held(part).runs)
    try:
        footer = pq.read_metadata(part)
    except (pa.ArrowException, ValueError) as error:
        raise MalformedError(f"{part}: expected a Parquet file: {error!s:.200}") from error
    return Extent(_range(footer, "ts_ns") or ALWAYS, _range(footer, "run_id"))


def _range(footer: pq.FileMetaData, name: str) -> Any:
    """The least and the largest value of a column, where every group of rows has them."""
    if name not in footer.schema.names:
        return None
    place = footer.schema.names.index(name)
    statistics = [footer.row_group(number).column(place).statistics for number in range(footer.num_row_groups)]
    if not statistics or any(group is None or not group.has_min_max for group in statistics):
        return None
    return min(group.min for group in statistics), max(group.max for group in statistics)


@dataclass(frozen=True)
class Holdings:
    """The parts of one set that may hold rows of a time, with their extents: first and last, shape (n_parts,)."""

    parts: tuple[str, ...]
    first_ns: NDArray[np.int64]
    last_ns: NDArray[np.int64]
    extents: tuple[Extent, ...]

    @classmethod
    def of(cls, lake: Lake, name: str, within: Span = ALWAYS, run_ids: Collection[str] | None = None) -> "Holdings":
        """Return what is stored now. Raises: MalformedError."""

        def look(_: object) -> Holdings:
            parts = lake.parts(name, within, run_ids)
            extents = tuple(map(extent_of, parts))
            spans = np.array([extent.span for extent in extents], np.int64).reshape(-1, 2)
            return cls(tuple(f"{name}/{part.name}" for part in parts), spans[:, 0], spans[:, 1], extents)

        return lake.answer(look)

    def named(self, within: Span, run_id: str | None = None) -> list[str]:
        """The names of those that may hold rows of this time, and of this run."""
        places = np.flatnonzero((self.first_ns <= within[1]) & (self.last_ns >= within[0]))
        return [self.parts[place] for place in places if run_id is None or self.extents[place].may_hold(run_id)]
