"""The extent of a batch: a small one could otherwise name so many days that each of its rows made a file."""

import time
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from crosswind.data.lake.lake import set_of
from crosswind.data.lake.parts import DAY_NS
from crosswind.data.schema.errors import InvalidInputError

DAYS_MAX = 40
SETS_MAX = 200
FILES_MAX = 400
AHEAD_NS = DAY_NS  # a sender's clock may be wrong by this much


def check_extent(tables: Sequence[pa.Table]) -> None:
    """Check that a batch makes few files: one for each set and day. Raises: InvalidInputError."""
    days = [set(pc.unique(pc.divide(table["ts_ns"], DAY_NS)).to_pylist()) for table in tables]
    counts = {
        "days": (len(set().union(*days)), DAYS_MAX),
        "sets": (len(tables), SETS_MAX),
        "files, one for each set and day": (sum(map(len, days)), FILES_MAX),
    }
    for name, (count, most) in counts.items():
        if count > most:
            raise InvalidInputError(f"batch of {count} {name}: expected at most {most}")


def believed(table: pa.Table, now_ns: int | None = None) -> tuple[pa.Table, str | None]:
    """Return the rows from 1970 until tomorrow, and a sentence on the others if there are any."""
    last = (time.time_ns() if now_ns is None else now_ns) + AHEAD_NS
    limits = pc.min_max(table["ts_ns"]).as_py()
    if not len(table) or (limits["min"] >= 0 and limits["max"] <= last):
        return table, None
    kept = table.filter(pc.and_(pc.greater_equal(table["ts_ns"], 0), pc.less_equal(table["ts_ns"], last)))
    name, count = set_of(table.schema).name, len(table) - len(kept)
    return kept, f"rows of {name}: {count} before 1970 or more than a day ahead of this clock are left out"
