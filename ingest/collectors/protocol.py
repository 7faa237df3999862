"""TCP, UDP and IP over all interfaces: traffic, retransmissions, datagrams and packets lost."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.metric import MetricSet, Sample
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.kernel.kernel_files import KernelFiles
from crosswind.ingest.kernel.protocols import IP, TCP, UDP, Protocols

PROTOCOL = MetricSet(
    "protocol",
    "tcp, udp and ip (the devices) over all interfaces of the agent's network namespace",
    (*TCP.values(), *UDP.values(), *IP.values()),
)


@dataclass(frozen=True)
class ProtocolCollector:
    """Counters of the protocols, a device each.

    Source: proc_pid_net(5); https://docs.kernel.org/networking/snmp_counter.html
    """

    proc: Path = Path("/proc")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    metric_set: ClassVar[MetricSet] = PROTOCOL
    _protocols: Protocols = field(default_factory=Protocols, init=False, repr=False, compare=False)

    def available(self) -> bool:
        """Return whether the kernel shows its protocols."""
        return self.files.is_readable(f"{self.proc}/net/snmp")

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every protocol. Raises: UnavailableError, MalformedError."""
        values: dict[str, dict[str, int]] = {}
        for name in ("snmp", "netstat"):
            path = f"{self.proc}/net/{name}"
            for device, counters in self._protocols.read(self.files.read(path), path).items():
                values.setdefault(device, {}).update(counters)
        yield from (Sample(device, counters) for device, counters in values.items())


SOURCE = Source("protocol", lambda host, _: ProtocolCollector(host.proc, host.files), advice="mount /proc")
