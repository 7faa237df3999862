"""Lustre file systems: operations of programs, and how long they took."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from crosswind.data.schema.metric import MetricSet, Sample
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.kernel.lustre_stats import INSTANCE, STAMPS, Lines, LustreStats, calls, moved, seconds

OPERATIONS = {
    "read": "read calls",
    "write": "write calls",
    "open": "files opened",
    "close": "files closed",
    "mmap": "files mapped",
    "page_fault": "pages fetched for a mapped file",
    "page_mkwrite": "pages of a mapped file made writable",
    "seek": "seek calls",
    "fsync": "fsync calls",
    "readdir": "directories read",
    "setattr": "attributes set",
    "getattr": "attributes asked for",
    "truncate": "files cut",
    "flock": "file locks",
    "statfs": "sizes of the file system asked for",
    "create": "files created",
    "unlink": "files removed",
    "mkdir": "directories made",
    "rmdir": "directories removed",
    "mknod": "files made by number, as by an open that creates",
    "rename": "files renamed",
    "setxattr": "extended attributes set",
    "getxattr": "extended attributes asked for",
    "inode_permission": "permissions checked",
}
READ = moved("read", "bytes that programs read, from the cache too")
WRITTEN = moved("written", "bytes that programs wrote")
CALLS = {name.encode(): calls(name, description) for name, description in OPERATIONS.items()}
SECONDS = {name.encode(): seconds(name, description) for name, description in OPERATIONS.items()}
LUSTRE = MetricSet(
    "lustre",
    "each mounted Lustre file system; what was never done since the mount has no value",
    (READ, WRITTEN, *CALLS.values(), *SECONDS.values(), *STAMPS.values(), INSTANCE),
)
LINES = Lines(
    # Before 2.13 reads and writes have no line of their own, but the lines of their bytes count them, too.
    calls={name: column.name for name, column in CALLS.items()}
    | {b"read_bytes": CALLS[b"read"].name, b"write_bytes": CALLS[b"write"].name},
    sums={b"read_bytes": READ.name, b"write_bytes": WRITTEN.name},
    times={name: column.name for name, column in SECONDS.items()},
)
ADVICE = (
    "mount a Lustre file system; from 2.12 on its counters are in debugfs, for root alone: "
    "give the agent CAP_DAC_READ_SEARCH, or its group access to /sys/kernel/debug"
)


@dataclass(frozen=True)
class LustreCollector:
    """Counters since the mount, or since somebody cleared them with `lctl set_param llite.*.stats=clear`.

    Source: lustre/llite/lproc_llite.c; https://wiki.lustre.org/Lustre_IO_Monitoring
    """

    stats: LustreStats
    metric_set: ClassVar[MetricSet] = LUSTRE

    def available(self) -> bool:
        """Return whether Lustre is mounted and shows its counters."""
        return self.stats.are_readable()

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every file system, or target. Raises: UnavailableError, MalformedError."""
        yield from (Sample(device, values) for device, values in self.stats.read())


SOURCE = Source(
    "lustre",
    lambda host, _: LustreCollector(LustreStats(("llite",), LINES, host.proc, host.sysfs, host.files)),
    advice=ADVICE,
)
