"""Recording the results of a check in the spool."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from crosswind.data.schema.checks import PREFLIGHT, Measured
from crosswind.ingest.spool.spool import SpoolWriter


@dataclass(frozen=True)
class Occasion:
    """The values that all rows of one check share, by the names of the set's columns."""

    check_id: str
    ts_ns: int
    system: str
    job_id: str | None


def record(spool: Path, occasion: Occasion, measured: Iterable[Measured]) -> int:
    """Append the values, without those that are no finite numbers. Return how many. Raises: UnavailableError."""
    rows = [asdict(measurement) for measurement in measured if math.isfinite(measurement.value)]
    if not rows:
        return 0
    columns = {
        name: [(asdict(occasion) | row).get(name) for row in rows]
        for name in (column.name for column in PREFLIGHT.columns)
    }
    with SpoolWriter(spool, f"{occasion.check_id}-check") as writer:
        writer.append_rows(PREFLIGHT, columns)
    return len(rows)
