"""Jobs seen on the node at the time of the sweep: a check of end times and clocks.

No other sample names a job: they are joined by node, device and time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, Sample
from crosswind.ingest.collectors.source import Host, Options, Source
from crosswind.ingest.occupancy.occupancy import Occupancy
from crosswind.ingest.probe.place import node_name

MAX_TEXT = 2000
COUNTS = ("ranks", "unreadable_processes", "garbled_files", "lost_records_total")
OCCUPANCY = MetricSet(
    "occupancy",
    "jobs and ranks seen on the node; the device is always node",
    (
        Column("job_ids", "jobs, sorted, with commas between; cut after the last that fits", Kind.FACT, "string"),
        Column("jobs", "how many jobs"),
        Column("ranks", "how many processes are known to be ranks"),
        Column("unreadable_processes", "processes whose environment this user may not read"),
        Column("garbled_files", "announcements and job files that cannot be believed or understood"),
        Column(
            "lost_records_total", "records of jobs and ranks that the spool refused or had no room for", Kind.COUNTER
        ),
    ),
)


@dataclass(frozen=True)
class OccupancyCollector:
    """The outcome of the agent's last look at jobs and ranks."""

    occupancy: Occupancy
    metric_set: ClassVar[MetricSet] = OCCUPANCY

    def available(self) -> bool:
        """Return whether the agent can see jobs and ranks."""
        return self.occupancy.seen.reason is None

    def read(self) -> Iterator[Sample]:
        """Yield one sample. Raises: UnavailableError."""
        seen = self.occupancy.seen
        if seen.reason is not None:
            raise UnavailableError(seen.reason)
        counts = {name: getattr(seen, name) for name in COUNTS}
        yield Sample("node", {"job_ids": _joined(seen.job_ids), "jobs": len(seen.job_ids), **counts})


def _joined(job_ids: tuple[str, ...]) -> str:
    text = ",".join(job_ids)
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT].rpartition(",")[0]


def _made(host: Host, _: Options) -> OccupancyCollector:
    return OccupancyCollector(host.occupancy or Occupancy(node_name(), proc=host.proc))


SOURCE = Source("occupancy", _made, advice="mount /proc")
