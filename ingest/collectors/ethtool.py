"""Statistics of network adapters' drivers under the drivers' names: pauses, discards, marks and lost packets."""

import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, OnFull, Sample, Scalar
from crosswind.ingest.collectors.source import Source, shows_something
from crosswind.ingest.kernel.ethtool_ioctl import Ethtool
from crosswind.ingest.kernel.printable import printable

REFRESH_SECONDS = 10.0
# The names of congestion and loss in the drivers of Mellanox, Intel, Broadcom, Amazon and Google.
MATCH = (
    *("pause", "pfc", "prio", "discard", "drop", "error", "_err", "err_", "crc", "fifo", "overrun", "overflow"),
    *("out_of_buffer", "no_buf", "nobuf", "missed", "timeout", "ecn", "cnp", "retrans", "congest", "exceeded"),
    *("stopped", "stall", "out_of_seq", "link_down"),
)
ETHTOOL = MetricSet(
    "ethtool",
    "statistics of congestion and loss of an interface's driver, one a row, under the driver's own name",
    (
        Column("statistic", "the driver's name for it", Kind.KEY, "string"),
        Column("value_total", "as the driver counts; a few are gauges", Kind.COUNTER, "uint64", on_full=OnFull.RESET),
        Column("ifindex", "number of the interface; one made again has another", Kind.EPOCH),
        Column("driver", "its driver", Kind.FACT, "string"),
        Column("driver_version", "version of the driver, mostly that of the kernel", Kind.FACT, "string"),
    ),
)


@dataclass(frozen=True, slots=True)
class _Interface:
    """The layout of one interface's statistics: their number, and the rows of the selected ones."""

    index: int
    driver: str
    count: int
    rows: Mapping[int, Mapping[str, Scalar]]  # by place among all; without the value


@dataclass(frozen=True)
class EthtoolCollector:
    """Statistics whose names contain one of `match`, of `interfaces`, or of all but virtual ones.

    Source: linux/ethtool.h; https://docs.kernel.org/networking/statistics.html
    """

    match: tuple[str, ...] = MATCH
    interfaces: tuple[str, ...] = ()
    ethtool: Ethtool = field(default_factory=Ethtool, repr=False, compare=False)
    metric_set: ClassVar[MetricSet] = ETHTOOL
    _learnt: dict[bytes, _Interface] = field(default_factory=dict, init=False, repr=False, compare=False)
    _renewed: list[float] = field(default_factory=list, init=False, repr=False, compare=False)

    def available(self) -> bool:
        """Return whether a driver here keeps such statistics."""
        return shows_something(self.read())

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every statistic. Raises: UnavailableError when no driver keeps any."""
        self._learn_all_now_and_then()
        if not any(layout.rows for layout in self._learnt.values()):
            raise UnavailableError("SIOCETHTOOL: no interface of this network namespace has such statistics")
        for interface in [name for name, layout in self._learnt.items() if layout.rows]:
            try:
                yield from self._statistics(interface)
            except (UnavailableError, MalformedError):  # it has gone, or is changing
                self._renewed.clear()

    def _statistics(self, interface: bytes) -> list[Sample]:
        layout = self._learnt[interface]
        if self.ethtool.index(interface) != layout.index:
            layout = self._learn(interface)
        values = self.ethtool.values(interface, layout.count)
        if len(values) != layout.count:  # another number of queues, or another driver
            layout = self._learn(interface)
            values = self.ethtool.values(interface, layout.count)
        if len(values) != layout.count:
            raise UnavailableError(f"{printable(interface)}: its statistics change while being read")
        device = printable(interface)
        return [Sample(device, {**row, "value_total": values[place]}) for place, row in layout.rows.items()]

    def _learn_all_now_and_then(self) -> None:
        now = time.monotonic()
        if self._renewed and now - self._renewed[0] < REFRESH_SECONDS:
            return
        names = {os.fsencode(name) for _, name in socket.if_nameindex()}
        if self.interfaces:
            names &= {os.fsencode(name) for name in self.interfaces}
        for gone in self._learnt.keys() - names:
            del self._learnt[gone]
        for interface in sorted(names):
            self._learn_if_changed(interface)
        self._renewed[:] = [now]

    def _learn_if_changed(self, interface: bytes) -> None:
        """Learn the layout again if the driver changed: a new one may have the old one's count, and even its index."""
        try:
            layout = self._learnt.get(interface)
            if layout is None or not layout.rows or self.ethtool.driver(interface).name != layout.driver:
                self._learn(interface)
        except (UnavailableError, MalformedError):  # a loopback, or a driver without statistics
            self._learnt.pop(interface, None)

    def _learn(self, interface: bytes) -> _Interface:
        index, driver = self.ethtool.index(interface), self.ethtool.driver(interface)
        facts: dict[str, Scalar] = {"ifindex": index, "driver": driver.name, "driver_version": driver.version}
        names = () if driver.name == "veth" and not self.interfaces else self.ethtool.names(interface)
        rows = {place: {"statistic": name, **facts} for name, place in self._chosen(names).items()}
        self._learnt[interface] = _Interface(index, driver.name, len(names), rows)
        return self._learnt[interface]

    def _chosen(self, names: Iterable[str]) -> dict[str, int]:
        places: dict[str, int] = {}
        for place, name in enumerate(names):
            if name and any(part in name.lower() for part in self.match):
                places.setdefault(name, place)  # a name that occurs twice names the first
        return places


SOURCE = Source(
    "ethtool",
    lambda host, options: EthtoolCollector(  # noqa: ARG005 - drivers are queried, no file is read
        tuple(part.lower() for part in options.texts("match", MATCH)), options.texts("interfaces")
    ),
    advice="a network adapter whose driver answers ethtool -S; name it in interfaces if it is a veth",
    interval_seconds=1.0,  # some drivers ask their firmware
    timeout_seconds=5.0,  # for as long as somebody else configures the network
    options=("match", "interfaces"),
)
