"""NFS clients: bytes, operations, times and retransmissions of each mount."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, OnFull, Sample, Scalar
from crosswind.ingest.collectors.source import Source, shows_something
from crosswind.ingest.kernel.kernel_files import KernelFiles
from crosswind.ingest.kernel.printable import printable

HEADING = re.compile(rb"(?:device )?(\S+) mounted on (\S+) with fstype nfs4? statvers=1\.\d")
VERSION = re.compile(rb"[,\t]vers=([0-9.]{1,5})")
MOST_DIGITS: Final = 18  # the kernel writes times that its own errors made negative as almost 2 ** 64


def _since_mount(name: str, description: str, unit: str = "", scale: float = 1.0) -> Column:
    return Column(name, description, Kind.COUNTER, unit=unit, scale=scale, on_full=OnFull.RESET)


def _since_boot(name: str, description: str) -> Column:
    return Column(name, description, Kind.COUNTER, width_bits=32)


# After the name of an operation, in this order.
OF_EACH = (
    ("operations_total", "done", "", 1.0),
    ("transmissions_total", "sent; what is more than those done was sent again", "", 1.0),
    ("timeouts_total", "that took so long that an error was reported", "", 1.0),
    ("sent_bytes_total", "bytes sent, with headers", "bytes", 1.0),
    ("received_bytes_total", "bytes received, with headers", "bytes", 1.0),
    ("queue_seconds_total", "time they waited to be sent, summed", "seconds", 1e-3),
    ("round_trip_seconds_total", "time from sent to answered, summed", "seconds", 1e-3),
    ("execute_seconds_total", "time from asked for to done, summed", "seconds", 1e-3),
    ("errors_total", "that failed", "", 1.0),
)
OPERATIONS = {
    name: tuple(
        _since_mount(f"{name.lower()}_{suffix}", f"{name}: {text}", unit, scale)
        for suffix, text, unit, scale in OF_EACH
    )
    for name in ("READ", "WRITE", "COMMIT", "OPEN", "CLOSE", "GETATTR", "LOOKUP", "ACCESS", "READDIR")
}
BYTES = (
    _since_mount("read_bytes_total", "bytes that read calls gave to programs", "bytes"),
    _since_mount("written_bytes_total", "bytes that write calls took from programs", "bytes"),
    _since_mount("direct_read_bytes_total", "bytes read past the cache", "bytes"),
    _since_mount("direct_written_bytes_total", "bytes written past the cache", "bytes"),
    _since_mount("server_read_bytes_total", "bytes that the server sent", "bytes"),
    _since_mount("server_written_bytes_total", "bytes that were sent to the server", "bytes"),
)
# The place of each among the events.
EVENTS = {
    22: _since_mount("short_reads_total", "answers with fewer bytes than were asked for"),
    23: _since_mount("short_writes_total", "writes of which the server took a part"),
    24: _since_mount("delays_total", "times that the server asked to try again later"),
}
AGE = Column("age_seconds", "since the mount", unit="seconds")
FACTS = (
    Column("server", "server and path that are mounted", Kind.FACT, "string"),
    Column("version", "version of the protocol", Kind.FACT, "string"),
)
RPC = (
    _since_boot("rpc_calls_total", "calls of NFS on the whole node"),
    _since_boot("rpc_retransmissions_total", "calls sent again"),
    _since_boot("rpc_auth_refreshes_total", "credentials renewed"),
)
# Places after `proc3 22` are procedure numbers; those after `proc4 61` are the kernel's own, of which the first
# twenty have been the same since NFSv4 came.
PROCEDURES = {
    b"proc3": {1: "getattr", 3: "lookup", 4: "access", 6: "read", 7: "write", 8: "create", 16: "readdir", 21: "commit"},
    b"proc4": {1: "read", 2: "write", 3: "commit", 4: "open", 8: "close", 17: "access", 18: "getattr", 19: "lookup"},
}
CALLS = {
    line: {
        place: _since_boot(f"v{line[-1:].decode()}_{name}_calls_total", f"NFSv{line[-1:].decode()} {name} on the node")
        for place, name in names.items()
    }
    for line, names in PROCEDURES.items()
}
NFS = MetricSet(
    "nfs",
    "NFS mounts by the folder they are mounted on, which share counters where they share a server's path; "
    "device all is the whole node",
    (
        *BYTES,
        *(column for columns in OPERATIONS.values() for column in columns),
        *EVENTS.values(),
        AGE,
        *FACTS,
        *RPC,
        *(column for columns in CALLS.values() for column in columns.values()),
    ),
)
LINES = [(b"\t%12s: " % name.encode(), [column.name for column in columns]) for name, columns in OPERATIONS.items()]


@dataclass(frozen=True)
class NfsCollector:
    """Counters of each mount since it was mounted, and of the node since boot.

    Reading them sends no request, and so does not hang with a server: the kernel has them in memory.
    Source: linux/nfs_iostat.h, linux/sunrpc/metrics.h, linux/nfs4.h; net/sunrpc/stats.c; RFC 1813; nfsiostat(8)
    """

    proc: Path = Path("/proc")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    metric_set: ClassVar[MetricSet] = NFS

    def available(self) -> bool:
        """Return whether this node is a client of NFS."""
        return shows_something(self.read())

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every mount and one for the node. Raises: UnavailableError without NFS, MalformedError."""
        mounts = dict(self._mounts())
        node = self._node()
        if not mounts and not node:
            raise UnavailableError(f"{self.proc}/self/mountstats, {self.proc}/net/rpc/nfs: no NFS")
        yield from (Sample(device, values) for device, values in mounts.items())
        if node:
            yield Sample("all", node)

    def _mounts(self) -> Iterator[tuple[str, Mapping[str, Scalar]]]:
        try:
            content = self.files.read(f"{self.proc}/self/mountstats")
        except UnavailableError:  # a kernel without it, or a sandbox
            return
        if b" with fstype nfs" not in content:
            return
        for mount in content.split(b"\ndevice "):
            if (heading := HEADING.match(mount)) is not None:
                yield printable(heading[2]), {"server": printable(heading[1]), **_of_mount(mount)}

    def _node(self) -> dict[str, int]:
        path = f"{self.proc}/net/rpc/nfs"
        try:
            lines = [line.split() for line in self.files.read(path).splitlines()]
        except UnavailableError:
            return {}
        counts: dict[str, int] = {}
        for name, *numbers in filter(None, lines):
            if name == b"rpc":
                counts |= _taken(enumerate(column.name for column in RPC), numbers)
            elif name in CALLS:
                counts |= _taken(((place + 1, column.name) for place, column in CALLS[name].items()), numbers)
        if not counts:
            raise MalformedError(f"{path}: expected lines of rpc, proc3 and proc4 with numbers, found {lines!r:.80}")
        return counts


def _of_mount(mount: bytes) -> dict[str, Scalar]:
    values: dict[str, Scalar] = {}
    if (version := VERSION.search(mount)) is not None:
        values["version"] = version[1].decode()
    values |= _taken([(0, AGE.name)], _line(mount, b"\tage:\t"))
    values |= _taken(enumerate(column.name for column in BYTES), _line(mount, b"\tbytes:\t"))
    values |= _taken(((place, column.name) for place, column in EVENTS.items()), _line(mount, b"\tevents:\t"))
    for start, names in LINES:
        values |= _taken(enumerate(names), _line(mount, start))
    return values


def _line(mount: bytes, start: bytes) -> list[bytes]:
    """Return the numbers of the line that starts like this; none if there is no such line."""
    begin = mount.find(b"\n" + start)
    if begin < 0:
        return []
    begin += 1 + len(start)
    end = mount.find(b"\n", begin)
    return mount[begin : end if end >= 0 else len(mount)].split()


def _taken(columns: Iterable[tuple[int, str]], numbers: list[bytes]) -> dict[str, int]:
    """Return each column's number, if there is one."""
    return {
        name: int(numbers[place])
        for place, name in columns
        if place < len(numbers) and numbers[place].isdigit() and len(numbers[place]) <= MOST_DIGITS
    }


SOURCE = Source("nfs", lambda host, _: NfsCollector(host.proc, host.files), advice="mount a file system by NFS")
