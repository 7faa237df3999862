"""Counters of TCP, UDP and IP over all interfaces of a network namespace."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.metric import Column, Kind

# Source: https://docs.kernel.org/networking/snmp_counter.html; include/uapi/linux/snmp.h; RFC 4022, 4113, 4293
TCP = (
    {
        b"Tcp.InSegs": Column("received_segments_total", "TCP segments received", Kind.COUNTER),
        b"Tcp.OutSegs": Column("sent_segments_total", "TCP segments sent", Kind.COUNTER),
        b"Tcp.RetransSegs": Column("retransmitted_segments_total", "TCP segments sent again", Kind.COUNTER),
        b"TcpExt.TCPTimeouts": Column(
            "retransmit_timeouts_total", "times TCP gave up waiting for an answer", Kind.COUNTER
        ),
        b"TcpExt.ListenDrops": Column("listen_drops_total", "connection attempts thrown away", Kind.COUNTER),
        b"Tcp.CurrEstab": Column("established_connections", "TCP connections that are open"),
    }
    | {
        b"Tcp." + name: Column(column, description, Kind.COUNTER)
        for name, column, description in (
            (b"ActiveOpens", "active_opens_total", "connections begun from here"),
            (b"PassiveOpens", "passive_opens_total", "connections begun by others"),
            (b"AttemptFails", "failed_opens_total", "connections that did not come about"),
            (b"EstabResets", "reset_connections_total", "open connections that were cut off"),
            (b"OutRsts", "sent_resets_total", "resets sent: connections refused or cut off by this node"),
            (b"InErrs", "received_broken_segments_total", "TCP segments with a wrong checksum or header"),
        )
    }
    | {
        b"TcpExt." + name: Column(column, description, Kind.COUNTER)
        for name, column, description in (
            (b"ListenOverflows", "listen_overflows_total", "connection attempts that a full queue refused"),
            (b"TCPLostRetransmit", "lost_retransmits_total", "segments sent again that were lost again"),
            (b"TCPFastRetrans", "fast_retransmits_total", "segments sent again in fast recovery"),
            (b"TCPSlowStartRetrans", "slow_start_retransmits_total", "segments sent again in slow start"),
            (b"TCPSynRetrans", "syn_retransmits_total", "SYN and SYN/ACK sent again"),
            (b"TCPRetransFail", "failed_retransmits_total", "segments to send again that the queue refused"),
            (b"TCPSpuriousRTOs", "spurious_timeouts_total", "time-outs that turn out to have been too early"),
            (b"TCPLossProbes", "loss_probes_total", "probes sent for a lost tail"),
            (b"TCPLossProbeRecovery", "loss_probe_recoveries_total", "lost tails that a probe repaired"),
            (b"TCPSackRecovery", "sack_recoveries_total", "losses found by selective acknowledgements"),
            (b"TCPSACKReorder", "sack_reorders_total", "reorderings found by selective acknowledgements"),
            (b"TCPTSReorder", "timestamp_reorders_total", "reorderings found by time stamps"),
            (b"TCPLossUndo", "loss_undos_total", "window reductions taken back after a time-out"),
            (b"TCPDSACKRecv", "duplicates_reported_total", "reports of the other end that data came twice"),
            (b"TCPOFOQueue", "out_of_order_segments_total", "segments that came before their turn and were kept"),
            (b"TCPOFODrop", "out_of_order_drops_total", "segments before their turn dropped for lack of memory"),
            (b"PruneCalled", "prunes_total", "times a socket's receive memory was squeezed"),
            (b"RcvPruned", "pruned_segments_total", "segments dropped since squeezing did not help"),
            (b"OfoPruned", "out_of_order_prunes_total", "times that what came before its turn was thrown away"),
            (b"TCPRcvCollapsed", "collapsed_segments_total", "segments merged to save memory"),
            (b"TCPRcvQDrop", "receive_queue_drops_total", "segments dropped since the socket's queue was full"),
            (b"TCPBacklogDrop", "backlog_drops_total", "segments dropped since the socket's backlog was full"),
            (b"TCPZeroWindowDrop", "zero_window_drops_total", "segments that came though the window was shut"),
            (b"TCPToZeroWindowAdv", "windows_shut_total", "times that a receive window was shut"),
            (b"TCPFromZeroWindowAdv", "windows_opened_total", "times that a shut receive window was opened"),
            (b"TCPWqueueTooBig", "write_queue_overflows_total", "times that a queue grew too long to split"),
            (b"TCPMemoryPressures", "memory_pressures_total", "times that TCP ran short of memory"),
            (b"TCPAbortOnMemory", "memory_aborts_total", "connections given up for lack of memory"),
            (b"TCPAbortOnTimeout", "timeout_aborts_total", "connections given up after too many time-outs"),
            (b"TCPOrigDataSent", "original_segments_total", "segments with data sent, repetitions left out"),
            (b"TCPDelivered", "delivered_segments_total", "segments that were acknowledged"),
            (b"TCPDeliveredCE", "delivered_marked_segments_total", "segments acknowledged with a congestion mark"),
        )
    }
    | {
        b"TcpExt.TCPMemoryPressuresChrono": Column(
            "memory_pressure_seconds_total", "TCP was short of memory", Kind.COUNTER, unit="seconds", scale=1e-3
        ),
    }
)
UDP = {
    b"Udp." + name: Column(column, description, Kind.COUNTER)
    for name, column, description in (
        (b"InDatagrams", "udp_received_datagrams_total", "UDP datagrams handed to a socket"),
        (b"OutDatagrams", "udp_sent_datagrams_total", "UDP datagrams sent"),
        (b"NoPorts", "udp_unclaimed_datagrams_total", "datagrams for a port that nobody has"),
        (b"InErrors", "udp_receive_errors_total", "datagrams that could not be handed over"),
        (b"RcvbufErrors", "udp_receive_buffer_errors_total", "datagrams dropped since the socket's buffer was full"),
        (b"SndbufErrors", "udp_send_buffer_errors_total", "datagrams not sent since the buffer was full"),
        (b"InCsumErrors", "udp_checksum_errors_total", "datagrams with a wrong checksum"),
        (b"MemErrors", "udp_memory_errors_total", "datagrams dropped for lack of memory"),
    )
}
IP = (
    {
        b"Ip." + name: Column(column, description, Kind.COUNTER)
        for name, column, description in (
            (b"InReceives", "ip_received_packets_total", "IP packets received"),
            (b"OutRequests", "ip_sent_packets_total", "IP packets sent by this node's protocols"),
            (b"InDiscards", "ip_receive_discards_total", "IP packets dropped though nothing was wrong with them"),
            (b"OutDiscards", "ip_transmit_discards_total", "IP packets not sent though nothing was wrong with them"),
            (b"InHdrErrors", "ip_header_errors_total", "IP packets with a broken header"),
            (b"OutNoRoutes", "ip_unroutable_packets_total", "IP packets that no route was found for"),
            (b"ReasmReqds", "ip_reassembly_fragments_total", "fragments received"),
            (b"ReasmTimeout", "ip_reassembly_timeouts_total", "packets given up since a fragment stayed out"),
            (b"ReasmFails", "ip_reassembly_failures_total", "packets that could not be put together"),
            (b"FragFails", "ip_fragmentation_failures_total", "packets too long that must not be cut up"),
            (b"FragCreates", "ip_fragments_total", "fragments made"),
        )
    }
    | {
        b"IpExt." + name: Column(column, description, Kind.COUNTER)
        for name, column, description in (
            (
                b"InCEPkts",
                "ip_congestion_marked_packets_total",
                "packets received that a switch marked with congestion",
            ),
            (b"InECT0Pkts", "ip_ect0_packets_total", "packets received that could have been marked, code 0"),
            (b"InECT1Pkts", "ip_ect1_packets_total", "packets received that could have been marked, code 1"),
            (b"InNoECTPkts", "ip_unmarkable_packets_total", "packets received that cannot be marked"),
            (b"InCsumErrors", "ip_checksum_errors_total", "packets received with a wrong checksum"),
        )
    }
    | {
        b"IpExt.InOctets": Column("ip_received_bytes_total", "bytes of IP packets", Kind.COUNTER, unit="bytes"),
        b"IpExt.OutOctets": Column("ip_sent_bytes_total", "bytes of IP packets", Kind.COUNTER, unit="bytes"),
    }
)
COLUMNS = {"tcp": TCP, "udp": UDP, "ip": IP}
DEVICES = {name: device for device, columns in COLUMNS.items() for name in columns}
KEPT_PLANS = 64
OVERFLOWN = 2**63


@dataclass(frozen=True, slots=True)
class _Plan:
    """The wanted numbers of a line, given the line of names above it."""

    device: str
    fields: int
    places: tuple[int, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Protocols:
    """Reads pairs of lines: the names, then the numbers. The names hardly ever change, so their plan is kept."""

    _plans: dict[bytes, _Plan | None] = field(default_factory=dict)

    def read(self, content: bytes, path: str) -> Mapping[str, Mapping[str, int]]:
        """Return the columns of each device. Raises: MalformedError naming the file."""
        columns: dict[str, dict[str, int]] = {}
        lines = content.splitlines()
        for names, numbers in zip(lines[::2], lines[1::2], strict=False):
            if (plan := self._plan(names)) is not None:
                columns.setdefault(plan.device, {}).update(_numbers(plan, numbers.split(), path))
        if not columns:
            raise MalformedError(f"{path}: expected pairs of lines, names and numbers, of Tcp, Udp or Ip")
        return columns

    def _plan(self, names: bytes) -> _Plan | None:
        if names not in self._plans:
            if len(self._plans) >= KEPT_PLANS:
                self._plans.clear()
            self._plans[names] = _planned(names)
        return self._plans[names]


def without_overflow(values: dict[str, int]) -> dict[str, int]:
    """Return the counters without those that an error of a driver or the kernel made negative: almost 2 ** 64."""
    if max(values.values()) < OVERFLOWN:
        return values
    return {name: value for name, value in values.items() if value < OVERFLOWN}


def _planned(names: bytes) -> _Plan | None:
    fields = names.split()
    prefix = names.partition(b":")[0] + b"."
    places = tuple(place for place, name in enumerate(fields) if prefix + name in DEVICES)
    if not places:
        return None
    device = DEVICES[prefix + fields[places[0]]]
    columns = tuple(COLUMNS[device][prefix + fields[place]].name for place in places)
    return _Plan(device, len(fields), places, columns)


def _numbers(plan: _Plan, fields: list[bytes], path: str) -> dict[str, int]:
    if len(fields) != plan.fields:
        raise MalformedError(f"{path}: {len(fields)} fields of {plan.device}, expected {plan.fields}")
    wanted = [fields[place] for place in plan.places]
    if not b"".join(wanted).isdigit() or len(max(wanted, key=len)) > 20:
        raise MalformedError(f"{path}: expected whole numbers of {plan.device}, found {wanted!r:.80}")
    return without_overflow(dict(zip(plan.columns, map(int, wanted), strict=True)))
