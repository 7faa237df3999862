"""Queueing disciplines: bytes and packets that they sent, dropped, marked and hold back."""

import os
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Final

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, OnFull, Sample, Scalar
from crosswind.ingest.collectors.source import Source, shows_something
from crosswind.ingest.kernel.netlink import Netlink, attributes
from crosswind.ingest.kernel.printable import printable

REFRESH_SECONDS: Final = 10.0
RTM_GETQDISC: Final = 38
TCMSG = struct.Struct("=BxHiIII")  # struct tcmsg: family, padding, interface, handle, parent, reference count
EVERY_QUEUE = TCMSG.pack(0, 0, 0, 0, 0, 0)
ROOT: Final = 0xFFFFFFFF
INGRESS: Final = 0xFFFFFFF1
TCA_KIND: Final = 1
TCA_STATS2: Final = 7
TCA_STATS_BASIC: Final = 1
TCA_STATS_QUEUE: Final = 3
TCA_STATS_APP: Final = 4
TCA_STATS_PKT64: Final = 8
BASIC = struct.Struct("=QI")  # struct gnet_stats_basic: bytes, packets
QUEUE = struct.Struct("=IIIII")  # struct gnet_stats_queue: length, backlog, drops, requeues, overlimits
WORD = struct.Struct("=I")
WHOLE = struct.Struct("=Q")
# The place, in each kind's own statistics, of the count of packets that it marked instead of dropping them.
MARKS = {b"fq_codel": 12, b"codel": 24, b"red": 12}


def _wrapping(name: str, description: str) -> Column:
    return Column(name, description, Kind.COUNTER, width_bits=32)


QDISC = MetricSet(
    "qdisc",
    "queueing disciplines; the device is the interface and the queue's handle. Congestion of a sender shows here alone",
    (
        Column("sent_bytes_total", "bytes sent", Kind.COUNTER, "uint64", unit="bytes", on_full=OnFull.RESET),
        Column("sent_packets_total", "packets sent", Kind.COUNTER, "uint64", on_full=OnFull.RESET),
        _wrapping("drops_total", "packets thrown away"),
        _wrapping("overlimits_total", "times that a packet had to wait for a rate limit, or met a limit"),
        _wrapping("requeues_total", "packets that the driver would not take yet"),
        _wrapping("marks_total", "packets marked with ECN instead of dropped"),
        Column("backlog_bytes", "bytes waiting", unit="bytes"),
        Column("queued_packets", "packets waiting"),
        Column("ifindex", "number of the interface; one made again has another", Kind.EPOCH),
        Column("generation", "how often its counters were seen to reset", Kind.EPOCH),
        Column("kind", "the discipline, such as fq_codel", Kind.FACT, "string"),
        Column("parent", "the class it serves, or root", Kind.FACT, "string"),
    ),
)


@dataclass(slots=True)
class _Generation:
    """The generation of a queue: one that replaces another under its handle starts from 0, so the counters fall."""

    sent: tuple[int, int] = (0, 0)
    number: int = 0

    def of(self, sent: tuple[int, int]) -> int:
        if sent[0] < self.sent[0] or sent[1] < self.sent[1]:
            self.number += 1
        self.sent = sent
        return self.number


@dataclass(frozen=True)
class QdiscCollector:
    """One row for every queueing discipline, but for those of kind noqueue, which hold and count nothing.

    Source: linux/rtnetlink.h, linux/gen_stats.h, linux/pkt_sched.h; net/core/gen_stats.c for when packets have 64 bits
    """

    netlink: Netlink = field(default_factory=Netlink, repr=False, compare=False)
    metric_set: ClassVar[MetricSet] = QDISC
    _names: dict[int, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    _renewed: list[float] = field(default_factory=list, init=False, repr=False, compare=False)
    _generations: dict[str, _Generation] = field(default_factory=dict, init=False, repr=False, compare=False)

    def available(self) -> bool:
        """Return whether the kernel shows any queue."""
        return shows_something(self.read())

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every queue. Raises: UnavailableError when there is none, MalformedError."""
        messages = self.netlink.table(RTM_GETQDISC, EVERY_QUEUE)
        samples = [sample for message in messages for sample in self._sample(message)]
        if not samples:
            raise UnavailableError("netlink: no interface of this network namespace has a queueing discipline")
        for gone in self._generations.keys() - {sample.device for sample in samples}:
            del self._generations[gone]
        yield from samples

    def _sample(self, message: bytes) -> Iterator[Sample]:
        if len(message) < TCMSG.size:
            raise MalformedError(f"netlink: a queue in {len(message)} bytes, expected {TCMSG.size} or more")
        _, _, index, handle, parent, _ = TCMSG.unpack_from(message)
        parts = attributes(message, TCMSG.size, len(message))
        kind = message[slice(*parts.get(TCA_KIND, (0, 0)))].rstrip(b"\0")
        name = self._name(index)
        if name is None or kind == b"noqueue" or TCA_STATS2 not in parts:
            return
        served = _parent(parent)
        device = f"{name} {handle >> 16:x}:" if handle else f"{name} {served}"
        values: dict[str, Scalar] = {"ifindex": index, "kind": printable(kind), "parent": served}
        values |= _statistics(message, kind, *parts[TCA_STATS2])
        if "sent_bytes_total" in values:
            sent = (int(values["sent_bytes_total"] or 0), int(values["sent_packets_total"] or 0))
            values["generation"] = self._generations.setdefault(device, _Generation()).of(sent)
        yield Sample(device, values)

    def _name(self, index: int) -> str | None:
        """Return the interface's name, looked up again when it is unknown, and from time to time as names change."""
        now = time.monotonic()
        if index not in self._names or now - self._renewed[0] > REFRESH_SECONDS:
            names = {number: printable(os.fsencode(name)) for number, name in socket.if_nameindex()}
            self._names.clear()
            self._names.update(names)
            self._renewed[:] = [now]
        return self._names.get(index)


def _statistics(message: bytes, kind: bytes, begin: int, end: int) -> dict[str, int]:
    """Return the values of the nested statistics; those shorter than their structure are missing."""
    parts = attributes(message, begin, end)
    values: dict[str, int] = {}
    if (place := _held(parts, TCA_STATS_BASIC, BASIC.size)) is not None:
        values["sent_bytes_total"], values["sent_packets_total"] = BASIC.unpack_from(message, place)
        if (whole := _held(parts, TCA_STATS_PKT64, WHOLE.size)) is not None:  # present only if 32 bits do not hold it
            values["sent_packets_total"] = WHOLE.unpack_from(message, whole)[0]
    if (place := _held(parts, TCA_STATS_QUEUE, QUEUE.size)) is not None:
        length, backlog, drops, requeues, overlimits = QUEUE.unpack_from(message, place)
        values |= {"drops_total": drops, "overlimits_total": overlimits, "requeues_total": requeues}
        values |= {"backlog_bytes": backlog, "queued_packets": length}
    if kind in MARKS and (place := _held(parts, TCA_STATS_APP, MARKS[kind] + WORD.size)) is not None:
        values["marks_total"] = WORD.unpack_from(message, place + MARKS[kind])[0]
    return values


def _held(parts: dict[int, tuple[int, int]], kind: int, size: int) -> int | None:
    begin, end = parts.get(kind, (0, 0))
    return begin if end - begin >= size else None


def _parent(parent: int) -> str:
    if parent == ROOT:
        return "root"
    if parent == INGRESS:
        return "ingress"
    major = f"{parent >> 16:x}" if parent >> 16 else ""
    return f"{major}:{parent & 0xFFFF:x}"  # as tc writes it


SOURCE = Source(
    "qdisc",
    lambda host, options: QdiscCollector(),  # noqa: ARG005 - the kernel is queried, no file is read
    advice="a kernel with CONFIG_NET_SCHED and an interface that has a queue",
)
