"""The last reading of every source, kept by the agent and served to Prometheus."""

from dataclasses import dataclass

from crosswind.ingest.spool.spool import SweepRows


@dataclass(frozen=True, slots=True)
class LatestReading:
    """The last reading of one source."""

    rows: SweepRows
    duration_seconds: float
    reason: str | None
