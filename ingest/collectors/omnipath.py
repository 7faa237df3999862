"""Omni-Path ports (hfi1): traffic, waiting, errors and retransmissions."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, OnFull, Sample
from crosswind.ingest.collectors.listing import Listing, names_if_any
from crosswind.ingest.collectors.rdma_counters import columns, saturating, words
from crosswind.ingest.collectors.rdma_ports import Port, find_ports, is_omnipath, reader
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.kernel.kernel_files import KernelFiles


def _kept(name: str, description: str) -> Column:
    """Return a column for a counter of the driver."""
    return Column(f"{name}_total", description, Kind.COUNTER, dtype="uint64", on_full=OnFull.SATURATE)


# The driver writes ",32" after the name of a 32-bit register; of those, it extends the "synthetic" ones to 64 bits.
PORT = {
    "TxWords": words("driver_transmit_bytes_total", "data sent, headers included"),
    "RxWords": words("driver_receive_bytes_total", "data received, headers included"),
    "TxPkt": _kept("driver_transmit_packets", "packets sent"),
    "RxPkt": _kept("driver_receive_packets", "packets received"),
    "TxWait": _kept("tx_wait", "ticks of the link with data to send that had to wait for credits"),
    "TxFlowStall,32": saturating("tx_flow_stalls_total", "times that sending stood still for lack of credits", 32),
    "TxDropped,32": saturating("tx_dropped_total", "packets dropped before they were sent", 32),
    "XmitDscd,32": _kept("transmit_driver_discards", "packets to send thrown away"),
    "SwLinkUp,32": _kept("link_ups", "times that the link came up"),
    "SwLinkDown,32": _kept("link_downs", "times that the link went down"),
    "UnknownFrame": _kept("unknown_frames", "frames of an unknown kind"),
    "RcResend": _kept("rc_resends", "packets of reliable connections sent again"),
    "RcTimeOut": _kept("rc_timeouts", "times that a reliable connection got no answer in time"),
    "RcSeqNak": _kept("rc_sequence_naks", "answers that a packet was missing"),
    "RcDupRew": _kept("rc_duplicate_requests", "requests that came twice"),
    "RnrNak": _kept("rnr_naks", "answers that the receiver was not ready"),
    "OtherNak": _kept("other_naks", "other refusals"),
    "SeqNak": _kept("sequence_naks", "refusals for being out of order"),
    "RdmaSeq": _kept("rdma_sequence_errors", "RDMA packets out of order"),
    "PktDrop": _kept("packet_drops", "packets received and dropped by the driver"),
    "DmaWait": _kept("dma_waits", "times that sending waited for DMA descriptors"),
    "LoopPkts": _kept("loopback_packets", "packets to the node itself"),
}
DEVICE = {
    "vTxWait": _kept("verbs_transmit_waits", "times that verbs waited for a transmit request"),
    "PioWait": _kept("pio_waits", "times that sending waited for a buffer of the adapter"),
    "KmemWait": _kept("memory_waits", "times that sending waited for the node's memory"),
    "TidWait": _kept("tid_waits", "times that a transfer waited for receive entries"),
    "RcvLimit": _kept("receive_limits", "times that one interrupt had more packets than it may take"),
}
HARDWARE = PORT | DEVICE
OMNIPATH = MetricSet(
    "omnipath",
    "ports of Omni-Path; device hfi1_0/1 is port 1 of hfi1_0, device hfi1_0 what the driver counts for all of it",
    columns(HARDWARE),
)


@dataclass(frozen=True)
class OmnipathCollector:
    """Counters of each port; none of them wraps.

    Source: drivers/infiniband/hw/hfi1/chip.c (port_cntrs, dev_cntrs, init_cntrs), hfi1/mad.c; prometheus/node_exporter
    issue 2023 (names of the files).
    """

    sysfs: Path = Path("/sys")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    metric_set: ClassVar[MetricSet] = OMNIPATH
    _ports: Listing[Port] = field(default_factory=Listing, init=False, repr=False, compare=False)

    @property
    def _folder(self) -> str:
        return f"{self.sysfs}/class/infiniband"

    def available(self) -> bool:
        """Return whether there is a device of hfi1."""
        return any(is_omnipath(self._folder, device) for device in names_if_any(self._folder))

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every port that shows something. Raises: UnavailableError."""
        samples = self._ports.samples(self._find, reader(self.files))
        if not samples:
            raise UnavailableError(f"{self._folder}: no port of hfi1 shows anything")
        yield from samples

    def _find(self) -> Iterator[Port]:
        return find_ports(self._folder, HARDWARE, is_wanted=is_omnipath)


SOURCE = Source(
    "omnipath",
    lambda host, _: OmnipathCollector(host.sysfs, host.files),
    advice="the kernel driver hfi1, and its devices in this container or namespace",
    interval_seconds=1.0,  # the adapter reads all its counters at once
    timeout_seconds=5.0,
)
