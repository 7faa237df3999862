"""InfiniBand and RoCE ports: traffic, congestion, errors and retransmissions."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, Sample
from crosswind.ingest.collectors.listing import Listing, names_if_any
from crosswind.ingest.collectors.rdma_counters import columns
from crosswind.ingest.collectors.rdma_ports import Port, find_ports, is_omnipath, reader
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.kernel.kernel_files import KernelFiles


def _count(name: str, description: str, width_bits: int = 64) -> Column:
    return Column(f"{name}_total", description, Kind.COUNTER, dtype="uint64", width_bits=width_bits)


def _bytes(name: str, description: str) -> Column:
    return Column(f"{name}_bytes_total", description, Kind.COUNTER, dtype="uint64", unit="bytes")


# Congestion of RoCE: a switch marks packets, their receiver sends a notification (CNP), their sender slows down.
MARKED = _count("np_ecn_marked_roce_packets", "packets received that a switch had marked as congested")
CNP_SENT = _count("np_cnp_sent", "congestion notifications sent to those who send too fast")
CNP_HANDLED = _count("rp_cnp_handled", "congestion notifications that slowed this sender down")
CNP_IGNORED = _count("rp_cnp_ignored", "congestion notifications without effect")
CNP_RECEIVED = _count("cnp_received", "congestion notifications received, where the driver does not say more")
CONGESTION = {
    "np_ecn_marked_roce_packets": MARKED,
    "RxECNMrkd": MARKED,
    "rx_ecn_marked_pkts": MARKED,
    "np_cnp_sent": CNP_SENT,
    "cnpSent": CNP_SENT,
    "tx_cnp_pkts": CNP_SENT,
    "tx_cnp_pkt": CNP_SENT,
    "rp_cnp_handled": CNP_HANDLED,
    "cnpHandled": CNP_HANDLED,
    "rp_cnp_ignored": CNP_IGNORED,
    "cnpIgnored": CNP_IGNORED,
    "rx_cnp_pkts": CNP_RECEIVED,
    "rx_cnp_pkt": CNP_RECEIVED,
}
# mlx5's counters of queue pairs have 32 bits and wrap, though the kernel prints them as if they had 64.
MLX5 = {
    file: _count(file, description, width_bits=32)
    for file, description in {
        "out_of_sequence": "packets that came out of order",
        "packet_seq_err": "answers that a packet was missing",
        "local_ack_timeout_err": "times that no acknowledgement came in time",
        "rnr_nak_retry_err": "answers that the receiver was not ready",
        "out_of_buffer": "packets dropped because nobody had posted a receive",
        "implied_nak_seq_err": "acknowledgements that skipped a read or atomic",
        "duplicate_request": "requests that came twice",
        "req_transport_retries_exceeded": "requests given up after too many retries",
        "req_rnr_retries_exceeded": "requests given up because the receiver never got ready",
        "req_cqe_error": "requests that completed with an error",
        "req_cqe_flush_error": "requests flushed with their queue pair",
        "req_remote_invalid_request": "requests that the other side called invalid",
        "req_remote_access_errors": "requests that the other side refused",
        "resp_cqe_error": "receives that completed with an error",
        "resp_cqe_flush_error": "receives flushed with their queue pair",
        "resp_local_length_error": "messages longer than the receive posted for them",
        "resp_remote_access_errors": "requests refused here",
        "roce_adp_retrans": "adaptive retransmissions",
        "roce_adp_retrans_to": "adaptive retransmissions that ran into a time-out",
        "roce_slow_restart": "times that a sender started again slowly",
        "roce_slow_restart_cnps": "congestion notifications sent because of slow restarts",
        "roce_slow_restart_trans": "times that slow restart changed its state",
        "rx_write_requests": "RDMA writes received",
        "rx_read_requests": "RDMA reads received",
        "rx_atomic_requests": "atomics received",
        "rx_dct_connect": "connections made to dynamic targets",
    }.items()
}
ICRC = {"rx_icrc_encapsulated": _count("rx_icrc_encapsulated", "RoCE packets received with a bad checksum")}
SENT = _bytes("driver_transmit", "sent, as the driver's own counters say")
RECEIVED = _bytes("driver_receive", "received, as the driver's own counters say")
SENT_PACKETS = _count("driver_transmit_packets", "packets sent, as the driver's own counters say")
RECEIVED_PACKETS = _count("driver_receive_packets", "packets received, as the driver's own counters say")
DRIVER = {
    "tx_bytes": SENT,
    "rx_bytes": RECEIVED,
    "tx_pkts": SENT_PACKETS,
    "tx_pkt": SENT_PACKETS,
    "rx_pkts": RECEIVED_PACKETS,
    "rx_pkt": RECEIVED_PACKETS,
}
EFA = {
    "rx_drops": _count("rx_drops", "packets received and dropped"),
    "send_bytes": _bytes("send", "sent by send requests"),
    "send_wrs": _count("send_wrs", "send requests"),
    "recv_bytes": _bytes("recv", "received into posted receives"),
    "recv_wrs": _count("recv_wrs", "receives that completed"),
    "rdma_read_bytes": _bytes("rdma_read", "fetched by RDMA reads"),
    "rdma_read_resp_bytes": _bytes("rdma_read_resp", "sent in answer to RDMA reads"),
    "rdma_read_wrs": _count("rdma_read_wrs", "RDMA reads"),
    "rdma_read_wr_err": _count("rdma_read_wr_err", "RDMA reads that failed"),
    "rdma_write_bytes": _bytes("rdma_write", "sent by RDMA writes"),
    "rdma_write_recv_bytes": _bytes("rdma_write_recv", "received by RDMA writes of others"),
    "rdma_write_wrs": _count("rdma_write_wrs", "RDMA writes"),
    "rdma_write_wr_err": _count("rdma_write_wr_err", "RDMA writes that failed"),
    "retrans_bytes": _bytes("retrans", "sent again"),
    "retrans_pkts": _count("retrans_pkts", "packets sent again"),
    "retrans_timeout_events": _count("retrans_timeout_events", "times that packets were not acknowledged in time"),
    "unresponsive_remote_events": _count("unresponsive_remote_events", "times that a peer did not answer at all"),
    "impaired_remote_conn_events": _count("impaired_remote_conn_events", "times that a connection became slow"),
}
BNXT = {
    "to_retransmits": _count("to_retransmits", "retransmissions after a time-out"),
    "seq_err_naks_rcvd": _count("seq_err_naks_rcvd", "answers that a packet was missing"),
    "rnr_naks_rcvd": _count("rnr_naks_rcvd", "answers that the receiver was not ready"),
    "max_retry_exceeded": _count("max_retry_exceeded", "requests given up after too many retries"),
    "missing_resp": _count("missing_resp", "answers that never came"),
    "oos_drop_count": _count("oos_drop_count", "packets dropped for being out of order"),
    "rx_out_of_buffer": _count("rx_out_of_buffer", "packets dropped because nobody had posted a receive"),
    "tx_roce_discards": _count("tx_roce_discards", "packets to send thrown away"),
    "rx_roce_discards": _count("rx_roce_discards", "packets received and thrown away"),
    "tx_roce_errors": _count("tx_roce_errors", "packets that could not be sent"),
    "rx_roce_errors": _count("rx_roce_errors", "broken packets received"),
}
RETRANSMITTED = _count("retransmitted_segments", "segments sent again (irdma)")
IRDMA = {
    "RetransSegs": RETRANSMITTED,
    "tcpRetransSegs": RETRANSMITTED,
    "ip4InOctets": _bytes("ip4_receive", "received over IPv4"),
    "ip4OutOctets": _bytes("ip4_transmit", "sent over IPv4"),
    "ip6InOctets": _bytes("ip6_receive", "received over IPv6"),
    "ip6OutOctets": _bytes("ip6_transmit", "sent over IPv6"),
    "ip4InDiscards": _count("ip4_receive_discards", "IPv4 packets received and thrown away"),
    "ip6InDiscards": _count("ip6_receive_discards", "IPv6 packets received and thrown away"),
}
HNS = {
    "rx_err_pkt": _count("rx_err_pkt", "broken packets received"),
    "tx_err_pkt": _count("tx_err_pkt", "packets that could not be sent"),
}
HARDWARE = CONGESTION | MLX5 | ICRC | DRIVER | EFA | BNXT | IRDMA | HNS
INFINIBAND = MetricSet(
    "infiniband",
    "ports of InfiniBand and RoCE; device mlx5_0/1 is port 1 of mlx5_0, device mlx5_0 what it counts over its ports",
    columns(HARDWARE),
)


def _is_wanted(folder: str, device: str) -> bool:
    return not is_omnipath(folder, device)


@dataclass(frozen=True)
class InfinibandCollector:
    """Counters of each port, in words, packets and events as the port counts them.

    The port's own counters (PortCounters) saturate, those of errors at 4, 8 or 16 bits. The driver's (hw_counters)
    are as wide as the driver's: 32 bits in mlx5's queue counters, which wrap, 64 else.

    Source: drivers/infiniband/core/sysfs.c; drivers/infiniband/hw/: mlx5/counters.c, efa/efa_verbs.c,
    bnxt_re/hw_counters.c, irdma/verbs.c, hns/hns_roce_main.c; DPDK commit c5193a0bbef8 (32-bit queue counters wrap).
    """

    sysfs: Path = Path("/sys")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    metric_set: ClassVar[MetricSet] = INFINIBAND
    _ports: Listing[Port] = field(default_factory=Listing, init=False, repr=False, compare=False)

    @property
    def _folder(self) -> str:
        return f"{self.sysfs}/class/infiniband"

    def available(self) -> bool:
        """Return whether there is a device that is not Omni-Path."""
        return any(_is_wanted(self._folder, device) for device in names_if_any(self._folder))

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every port that shows something. Raises: UnavailableError."""
        samples = self._ports.samples(self._find, reader(self.files))
        if not samples:
            raise UnavailableError(f"{self._folder}: no port shows anything")
        yield from samples

    def _find(self) -> Iterator[Port]:
        return find_ports(self._folder, HARDWARE, is_wanted=_is_wanted)


SOURCE = Source(
    "infiniband",
    lambda host, _: InfinibandCollector(host.sysfs, host.files),
    advice="a kernel driver for the adapter, such as mlx5_ib, and its devices in this container or namespace",
    interval_seconds=1.0,  # each port counter is a command to the adapter's firmware, which jobs need too
    timeout_seconds=5.0,  # such a command takes a minute when the firmware hangs
)
