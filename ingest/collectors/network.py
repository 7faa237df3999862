"""Traffic, errors, drops and link of each network interface."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from crosswind.data.errors import MalformedError, UnavailableError
from crosswind.data.metric import Column, Kind, MetricSet, Sample, Scalar
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.kernel_files import KernelFiles
from crosswind.ingest.printable import printable
from crosswind.ingest.protocols import without_overflow

REFRESH_SECONDS: Final = 60.0  # asking for the speed may wait for whoever configures the network just then
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
    14: Column("transmit_carrier_errors_total", "packets lost for want of a link", Kind.COUNTER),
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
PLACES = tuple(INTERFACE)
NAMES = tuple(column.name for column in INTERFACE.values())


@dataclass(frozen=True, slots=True)
class _Link:
    """What was read of a link, when, and the counter of its changes at that time."""

    index: int
    changes: int | None
    monotonic: float
    state: Mapping[str, Scalar]


@dataclass(frozen=True)
class NetworkCollector:
    """Counters of each interface; a link's state is read again when it changes, or after 60 s.

    Source: proc_pid_net(5); https://docs.kernel.org/networking/statistics.html; ABI/testing/sysfs-class-net
    """

    proc: Path = Path("/proc")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    sysfs: Path = Path("/sys")
    metric_set: ClassVar[MetricSet] = NETWORK
    _links: dict[str, _Link] = field(default_factory=dict, init=False, repr=False, compare=False)

    def available(self) -> bool:
        """Whether the kernel shows its interfaces."""
        return self.files.is_readable(f"{self.proc}/net/dev")

    def read(self) -> Iterator[Sample]:
        """One sample an interface. Raises: UnavailableError, MalformedError."""
        path = f"{self.proc}/net/dev"
        lines = self.files.read(path).splitlines()
        if len(lines) < 2 or not lines[1].lstrip().startswith(b"face |bytes"):
            raise MalformedError(f"{path}: expected two lines of headings, found {lines[:2]!r:.80}")
        shown = {}
        for line in lines[2:]:
            name, _, numbers = line.partition(b":")
            shown[printable(name.strip())] = _counters(numbers.split(), path, line)
        self._forget_all_but(shown)
        for device, counters in shown.items():
            yield Sample(device, {**counters, **self._link(device)})

    def _forget_all_but(self, shown: Mapping[str, object]) -> None:
        for gone in self._links.keys() - shown.keys():
            del self._links[gone]
            self.files.forget(f"{self.sysfs}/class/net/{gone}")

    def _link(self, device: str) -> Mapping[str, Scalar]:
        folder = f"{self.sysfs}/class/net/{device}"
        index, changes = self._number(f"{folder}/ifindex"), self._number(f"{folder}/carrier_changes")
        if index is None:  # it has just gone, or sysfs shows another network namespace
            return {}
        known, now = self._links.get(device), time.monotonic()
        if known is None or (known.index, known.changes) != (index, changes) or now - known.monotonic > REFRESH_SECONDS:
            known = self._links[device] = _Link(index, changes, now, self._state(folder))
        changed = {} if changes is None else {"carrier_changes_total": changes}
        return {"ifindex": index, **changed, **known.state}

    def _state(self, folder: str) -> dict[str, Scalar]:
        """What the link says of itself; one that is down has neither speed nor carrier."""
        speed, mtu, carrier = (self._number(f"{folder}/{name}") for name in ("speed", "mtu", "carrier"))
        state: dict[str, Scalar] = {
            "speed_bytes_per_second": speed if speed and speed < UNKNOWN_SPEED else None,
            "mtu_bytes": mtu,
            "carrier": carrier,
            "operstate": self._word(f"{folder}/operstate"),
        }
        return {name: value for name, value in state.items() if value is not None}

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


def _counters(fields: list[bytes], path: str, line: bytes) -> dict[str, int]:
    if len(fields) != 16 or not b"".join(fields).isdigit() or len(max(fields, key=len)) > 20:
        raise MalformedError(f"{path}: expected 16 numbers an interface, found {line!r:.80}")
    return without_overflow(dict(zip(NAMES, [int(fields[place]) for place in PLACES], strict=True)))


SOURCE = Source("network", lambda host, _: NetworkCollector(host.proc, host.files, host.sysfs), advice="mount /proc")
