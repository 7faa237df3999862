"""Lustre targets: requests of this client to each of them, and how long the answers took."""

from dataclasses import dataclass
from typing import ClassVar

from crosswind.data.schema.metric import MetricSet
from crosswind.ingest.collectors.lustre import ADVICE, LustreCollector
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.kernel.lustre_stats import INSTANCE, STAMPS, Lines, LustreStats, calls, moved, seconds

REQUESTS = {
    b"req_waittime": ("request", "requests, each from sent to answered"),
    b"ost_read": ("read", "requests that read"),
    b"ost_write": ("write", "requests that write"),
    b"ost_punch": ("cut", "requests that cut a file"),
    b"ost_sync": ("sync", "requests that wait for the disk"),
    b"mds_getattr": ("getattr", "requests for attributes"),
    b"mds_close": ("close", "requests that close a file"),
    b"ldlm_enqueue": ("lock", "requests for a lock, most opens among them"),
}
READ = moved("read", "bytes that came from the target")
WRITTEN = moved("written", "bytes that went to the target")
CALLS = {line: calls(prefix, description) for line, (prefix, description) in REQUESTS.items()}
SECONDS = {line: seconds(prefix, description) for line, (prefix, description) in REQUESTS.items()}
LUSTRE_TARGETS = MetricSet(
    "lustre_targets",
    "each target, of data (OST) or metadata (MDT), as this client sees it; what was never asked for has no value",
    (READ, WRITTEN, *CALLS.values(), *SECONDS.values(), *STAMPS.values(), INSTANCE),
)
LINES = Lines(
    calls={name: column.name for name, column in CALLS.items()},
    sums={b"read_bytes": READ.name, b"write_bytes": WRITTEN.name},
    times={name: column.name for name, column in SECONDS.items()},
)


@dataclass(frozen=True)
class LustreTargetsCollector(LustreCollector):
    """Counters since the mount, or since somebody cleared them with `lctl set_param osc.*.stats=clear`.

    Source: lustre/ptlrpc/lproc_ptlrpc.c; https://wiki.lustre.org/Lustre_IO_Monitoring
    """

    metric_set: ClassVar[MetricSet] = LUSTRE_TARGETS


SOURCE = Source(
    "lustre_targets",
    lambda host, _: LustreTargetsCollector(LustreStats(("osc", "mdc"), LINES, host.proc, host.sysfs, host.files)),
    advice=ADVICE,
    interval_seconds=10.0,
    is_default=False,  # large file systems have hundreds of targets
)
