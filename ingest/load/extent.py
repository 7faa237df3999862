"""The extent of a batch: a small one could otherwise name so many days that each of its rows made a file."""

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


def believed(tables: Sequence[pa.Table], now_ns: int) -> tuple[list[pa.Table], list[str]]:
    """Return the rows from 1970 until tomorrow, and a sentence for each set that has others."""
    kept = [_believed(table, now_ns + AHEAD_NS) for table in tables]
    reasons = [
        f"rows of {set_of(table.schema).name}: {len(table) - len(rest)} before 1970 or more than a day ahead of this "
        "clock are left out"
        for table, rest in zip(tables, kept, strict=True)
        if len(rest) < len(table)
    ]
    return kept, reasons


def _believed(table: pa.Table, last_ns: int) -> pa.Table:
    limits = pc.min_max(table["ts_ns"]).as_py()
    if not len(table) or (limits["min"] >= 0 and limits["max"] <= last_ns):
        return table
    return table.filter(pc.and_(pc.greater_equal(table["ts_ns"], 0), pc.less_equal(table["ts_ns"], last_ns)))
