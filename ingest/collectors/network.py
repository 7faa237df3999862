"""Network interfaces: traffic, errors, drops and link."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import ClassVar, Final

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, Sample, Scalar
from crosswind.ingest.collectors.row import Row, samples_of
from crosswind.ingest.collectors.source import Host, Options, Source
from crosswind.ingest.kernel.kernel_files import KernelFiles
from crosswind.ingest.kernel.link_events import LinkEvents
from crosswind.ingest.kernel.printable import printable

LOOK_SECONDS: Final = 10.0  # at links without an announcement
REFRESH_SECONDS: Final = 60.0  # reading the speed may wait for a change of the network's configuration
UNKNOWN_SPEED: Final = 2**31 - 1  # some drivers write -1 without its sign
# The place of each column in a line of /proc/net/dev.
INTERFACE = {
    0: Column("receive_bytes_total", "bytes received", Kind.COUNTER, unit="bytes"),
    1: Column("receive_packets_total", "packets received", Kind.COUNTER),
    2: Column("receive_errors_total", "broken packets received", Kind.COUNTER),
    3: Column("receive_drops_total", "packets received and thrown away", Kind.COUNTER),
    4: Column("receive_overruns_total", "packets for which the adapter had no room", Kind.COUNTER),
    5: Column("receive_frame_errors_total", "packets of a wrong length or checksum", Kind.COUNTER),
    8: Column("transmit_bytes_total", "bytes sent", Kind.COUNTER, unit="bytes"),
    9: Column("transmit_packets_total", "packets sent", Kind.COUNTER),
    10: Column("transmit_errors_total", "packets that could not be sent", Kind.COUNTER),
    11: Column("transmit_drops_total", "packets the driver threw away; not those of queues", Kind.COUNTER),
    12: Column("transmit_overruns_total", "packets that the adapter's memory came too late for", Kind.COUNTER),
    14: Column("transmit_carrier_errors_total", "packets lost because there was no link", Kind.COUNTER),
}
LINK = (
    Column("carrier_changes_total", "times that the link came or went", Kind.COUNTER, width_bits=32),
    Column("ifindex", "number of the interface; one made again has another", Kind.EPOCH),
)
LINK_STATE = (
    Column("speed_bytes_per_second", "speed of the link", unit="bytes_per_second", scale=125_000),
    Column("mtu_bytes", "longest packet", unit="bytes"),
    Column("carrier", "1 while there is a link"),
    Column("operstate", "state of the interface, such as up, down, dormant", Kind.FACT, "string"),
)
NETWORK = MetricSet(
    "network",
    "each interface of the agent's network namespace",
    (*INTERFACE.values(), *LINK, *LINK_STATE),
)
NAMES = tuple(column.name for column in NETWORK.columns)
COUNTERS = itemgetter(*INTERFACE)
LONGEST_LINE: Final = 1000  # 16 numbers of 20 digits and a name take a third
OVERFLOWN: Final = 2**63
NO_LINK: Final = (None,) * (len(LINK) + len(LINK_STATE))


@dataclass(frozen=True, slots=True)
class _Link:
    """The state of a link, when it was read, and the counter of its changes at that time."""

    index: int
    changes: int | None
    monotonic: float
    state: tuple[Scalar, ...]


@dataclass
class _Seen:
    """Rows by their line, and by name the device and its link, as of the last look at all of them."""

    rows: dict[bytes, Row] = field(default_factory=dict)
    links: dict[bytes, tuple[str, tuple[Scalar, ...]]] = field(default_factory=dict)
    looked: float = float("-inf")


def _always() -> bool:
    return True


@dataclass(frozen=True)
class NetworkCollector:
    """Counters of each interface; a link's state is read again when it changes, or after 60 s.

    `links_changed` returns whether any link may have come, gone or changed since the last call; while none has, links
    are read once in 10 s. The kernel announces only those that are switched on.
    Source: proc_pid_net(5); https://docs.kernel.org/networking/statistics.html; ABI/testing/sysfs-class-net;
    https://docs.kernel.org/networking/operstates.html
    """

    proc: Path = Path("/proc")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    sysfs: Path = Path("/sys")
    links_changed: Callable[[], bool] = field(default=_always, repr=False, compare=False)
    metric_set: ClassVar[MetricSet] = NETWORK
    _links: dict[str, _Link] = field(default_factory=dict, init=False, repr=False, compare=False)
    _seen: _Seen = field(default_factory=_Seen, init=False, repr=False, compare=False)

    def available(self) -> bool:
        """Return whether the kernel shows its interfaces."""
        return self.files.is_readable(f"{self.proc}/net/dev")

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every interface. Raises: UnavailableError, MalformedError."""
        return samples_of(self.read_rows(), NAMES)

    def read_rows(self) -> list[Row]:
        """Return a row for every interface; the same object as before if the kernel's line did not change.

        Raises: UnavailableError, MalformedError.
        """
        path, seen = f"{self.proc}/net/dev", self._seen
        lines = self.files.read(path).splitlines()
        if len(lines) < 2 or not lines[1].lstrip().startswith(b"face |bytes"):
            raise MalformedError(f"{path}: expected two lines of headings, found {lines[:2]!r:.80}")
        # Called after reading the table: a change before that is announced by now.
        if self.links_changed() or time.monotonic() - seen.looked > LOOK_SECONDS:
            self.files.forget(f"{self.sysfs}/class/net")  # open files stay those of the device that had the name
            seen.rows, seen.links, seen.looked = {}, {}, time.monotonic()
        earlier = seen.rows
        rows = {line: earlier.get(line) or self._row(line, path) for line in lines[2:]}
        if len(rows) != len(earlier):
            self._forget_all_but({str(row[0]) for row in rows.values()})
        seen.rows = rows
        return list(rows.values())

    def _row(self, line: bytes, path: str) -> Row:
        name, _, numbers = line.partition(b":")
        counters = _counters(numbers.split(), path, line)
        cached = self._seen.links.get(name)
        if cached is None:
            device = printable(name.strip())
            cached = self._seen.links[name] = device, self._link(device)
        device, link = cached
        return device, *counters, *link

    def _forget_all_but(self, shown: set[str]) -> None:
        self._seen.links.clear()
        for gone in self._links.keys() - shown:
            del self._links[gone]

    def _link(self, device: str) -> tuple[Scalar, ...]:
        """Return the values of the columns of LINK and LINK_STATE."""
        folder = f"{self.sysfs}/class/net/{device}"
        index, changes = self._number(f"{folder}/ifindex"), self._number(f"{folder}/carrier_changes")
        if index is None:  # it has just gone, or sysfs shows another network namespace
            return NO_LINK
        link, now = self._links.get(device), time.monotonic()
        if link is None or (link.index, link.changes) != (index, changes) or now - link.monotonic > REFRESH_SECONDS:
            link = self._links[device] = _Link(index, changes, now, self._state(folder))
        return changes, index, *link.state

    def _state(self, folder: str) -> tuple[Scalar, ...]:
        """Return the state of the link; one that is down has neither speed nor carrier."""
        speed, mtu, carrier = (self._number(f"{folder}/{name}") for name in ("speed", "mtu", "carrier"))
        return speed if speed and speed < UNKNOWN_SPEED else None, mtu, carrier, self._word(f"{folder}/operstate")

    def _number(self, path: str) -> int | None:
        try:
            text = self.files.read(path).strip()
        except (UnavailableError, MalformedError):
            return None
        return int(text) if text.isdigit() and len(text) < 20 else None

    def _word(self, path: str) -> str | None:
        try:
            text = self.files.read(path).strip()
        except (UnavailableError, MalformedError):
            return None
        return text.decode() if text.isascii() and text.isalpha() and len(text) < 20 else None


def _counters(fields: list[bytes], path: str, line: bytes) -> Sequence[int | None]:
    if len(fields) != 16 or not b"".join(fields).isdigit() or len(line) > LONGEST_LINE:
        raise MalformedError(f"{path}: expected 16 numbers an interface, found {line!r:.80}")
    counters = list(map(int, COUNTERS(fields)))
    if max(counters) < OVERFLOWN:
        return counters
    if len(max(fields, key=len)) > 20:
        raise MalformedError(f"{path}: expected numbers of 64 bits, found {line!r:.80}")
    return [value if value < OVERFLOWN else None for value in counters]  # a driver has made it negative


def _made(host: Host, _: Options) -> NetworkCollector:
    """Make the collector of this node; links of a recorded tree are not announced."""
    changed = LinkEvents().happened if host.root == Path("/") else _always
    return NetworkCollector(host.proc, host.files, host.sysfs, changed)


SOURCE = Source("network", _made, advice="mount /proc")
