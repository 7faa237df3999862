"""Traffic, errors and drops of each network interface, and TCP's retransmissions."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.errors import MalformedError
from crosswind.data.metric import Column, Kind, MetricSet, Sample
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.kernel_files import KernelFiles
from crosswind.ingest.procfs import count

# The place of each column in a line of /proc/net/dev.
INTERFACE = {
    0: Column("receive_bytes_total", "bytes received", Kind.COUNTER, unit="bytes"),
    1: Column("receive_packets_total", "packets received", Kind.COUNTER),
    2: Column("receive_errors_total", "broken packets received", Kind.COUNTER),
    3: Column("receive_drops_total", "packets received and thrown away", Kind.COUNTER),
    8: Column("transmit_bytes_total", "bytes sent", Kind.COUNTER, unit="bytes"),
    9: Column("transmit_packets_total", "packets sent", Kind.COUNTER),
    10: Column("transmit_errors_total", "packets that could not be sent", Kind.COUNTER),
    11: Column("transmit_drops_total", "packets the driver threw away; not those of queues", Kind.COUNTER),
}
TCP = {
    b"Tcp.InSegs": Column("received_segments_total", "TCP segments received", Kind.COUNTER),
    b"Tcp.OutSegs": Column("sent_segments_total", "TCP segments sent", Kind.COUNTER),
    b"Tcp.RetransSegs": Column("retransmitted_segments_total", "TCP segments sent again", Kind.COUNTER),
    b"TcpExt.TCPTimeouts": Column("retransmit_timeouts_total", "times TCP gave up waiting for an answer", Kind.COUNTER),
    b"TcpExt.ListenDrops": Column("listen_drops_total", "connection attempts thrown away", Kind.COUNTER),
}
NETWORK = MetricSet(
    "network",
    "traffic of each interface of the agent's network namespace; device tcp is the protocol over all of them",
    (*INTERFACE.values(), *TCP.values()),
)


@dataclass(frozen=True)
class NetworkCollector:
    """Counters of each interface, and of TCP.

    Source: proc_pid_net(5); https://docs.kernel.org/networking/snmp_counter.html
    """

    proc: Path = Path("/proc")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    metric_set: ClassVar[MetricSet] = NETWORK

    def available(self) -> bool:
        """Whether the kernel shows its interfaces."""
        return self.files.is_readable(f"{self.proc}/net/dev")

    def read(self) -> Iterator[Sample]:
        """One sample an interface and one for TCP. Raises: UnavailableError, MalformedError."""
        yield from self._interfaces()
        snmp = self._protocols("snmp") | self._protocols("netstat")
        yield Sample("tcp", {column.name: snmp[name] for name, column in TCP.items() if name in snmp})

    def _interfaces(self) -> Iterator[Sample]:
        path = f"{self.proc}/net/dev"
        lines = self.files.read(path).splitlines()
        if len(lines) < 2 or not lines[1].lstrip().startswith(b"face |bytes"):
            raise MalformedError(f"{path}: expected two lines of headings, found {lines[:2]!r:.80}")
        for line in lines[2:]:
            name, _, numbers = line.partition(b":")
            fields = numbers.split()
            if len(fields) != 16:
                raise MalformedError(f"{path}: expected 16 numbers an interface, found {line!r:.80}")
            values = {column.name: count(fields[place], path) for place, column in INTERFACE.items()}
            yield Sample(name.strip().decode("utf-8", "backslashreplace"), values)

    def _protocols(self, name: str) -> dict[bytes, int]:
        """The counters that TCP needs, from pairs of lines: the names, then the numbers."""
        path = f"{self.proc}/net/{name}"
        lines = self.files.read(path).splitlines()
        found: dict[bytes, bytes] = {}
        for names, numbers in zip(lines[::2], lines[1::2], strict=False):
            protocol = names.partition(b":")[0]
            if protocol in (b"Tcp", b"TcpExt"):
                pairs = zip(names.split()[1:], numbers.split()[1:], strict=False)
                found |= {protocol + b"." + name: number for name, number in pairs}
        if not found:
            raise MalformedError(f"{path}: expected a pair of lines starting with Tcp")
        return {name: count(number, path) for name, number in found.items() if name in TCP}


SOURCE = Source("network", lambda host, _: NetworkCollector(host.proc, host.files), advice="mount /proc")
