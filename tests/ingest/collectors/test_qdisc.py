import json
import socket
import struct
from collections.abc import Iterator, Sequence

import pytest
from tests.ingest.kernel.test_netlink import Kernel, done, message
from tests.ingest.namespace import in_a_namespace, output_of

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import OnFull
from crosswind.ingest.collectors.qdisc import QDISC, QdiscCollector
from crosswind.ingest.kernel.netlink import Netlink

INDEX, NAME = socket.if_nameindex()[0]
ROOT = 0xFFFFFFFF


def attribute(kind: int, content: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(content), kind) + content + b"\0" * (-len(content) % 4)


def basic(sent_bytes: int, packets: int) -> bytes:
    return attribute(1, struct.pack("=QI4x", sent_bytes, packets))


def queue(length: int = 1, backlog: int = 2, drops: int = 3, requeues: int = 4, overlimits: int = 5) -> bytes:
    return attribute(3, struct.pack("=IIIII", length, backlog, drops, requeues, overlimits))


def qdisc(kind: str, *statistics: bytes, handle: int = 0x80010000, parent: int = ROOT, index: int = INDEX) -> bytes:
    head = struct.pack("=BxHiIII", 0, 0, index, handle, parent, 2)
    return head + attribute(1, kind.encode() + b"\0") + attribute(7, b"".join(statistics))


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    made = Kernel()
    with made.kernel, made.ours:
        yield made


def read(kernel: Kernel, *sweeps: Sequence[bytes]) -> list[dict[str, dict[str, object]]]:
    collector = QdiscCollector(Netlink(kernel.connect))
    for turn, queues in enumerate(sweeps, 1):
        kernel.kernel.send(b"".join(message(content, sequence=turn) for content in queues) + done(sequence=turn))
    return [{sample.device: dict(sample.values) for sample in collector.read()} for _ in sweeps]


def test_a_queue_reports_what_it_sent_dropped_and_holds_back(kernel: Kernel) -> None:
    [devices] = read(kernel, [qdisc("tbf", basic(10**12, 700), queue(7, 9000, 240, 0, 13808))])
    assert devices == {
        f"{NAME} 8001:": {
            "sent_bytes_total": 10**12,
            "sent_packets_total": 700,
            "drops_total": 240,
            "overlimits_total": 13808,
            "requeues_total": 0,
            "backlog_bytes": 9000,
            "queued_packets": 7,
            "ifindex": INDEX,
            "generation": 0,
            "kind": "tbf",
            "parent": "root",
        }
    }


def test_queues_of_one_interface_are_distinguished(kernel: Kernel) -> None:
    children = [qdisc("fq_codel", queue(), handle=0, parent=0x80020000 + place) for place in (1, 16)]
    [devices] = read(
        kernel,
        [
            qdisc("mq", queue(), handle=0x80020000),
            *children,
            qdisc("pfifo_fast", queue(), handle=0, parent=3),
            qdisc("pfifo", queue(), handle=0, parent=ROOT),
            qdisc("ingress", queue(), handle=0xFFFF0000, parent=0xFFFFFFF1),
        ],
    )
    assert list(devices) == [f"{NAME} {at}" for at in ("8002:", "8002:1", "8002:10", ":3", "root", "ffff:")]
    assert [values["parent"] for values in devices.values()] == ["root", "8002:1", "8002:10", ":3", "root", "ingress"]


def test_packets_beyond_32_bits_are_counted_in_64(kernel: Kernel) -> None:
    [devices] = read(kernel, [qdisc("tbf", basic(2**63 + 5, 7), attribute(8, struct.pack("=Q", 2**32 + 7)), queue())])
    assert devices[f"{NAME} 8001:"]["sent_packets_total"] == 2**32 + 7
    assert devices[f"{NAME} 8001:"]["sent_bytes_total"] == 2**63 + 5


def test_counters_of_32_bits_wrap_and_those_of_64_do_not() -> None:
    wrapping = {column.name for column in QDISC.columns if column.width_bits == 32}
    assert wrapping == {"drops_total", "overlimits_total", "requeues_total", "marks_total"}
    assert {QDISC[name].on_full for name in wrapping} == {OnFull.WRAP}
    assert QDISC["sent_bytes_total"].on_full is OnFull.RESET


@pytest.mark.parametrize(("kind", "place"), [("fq_codel", 3), ("codel", 6), ("red", 3)])
def test_marked_packets_are_reported_by_kinds_that_mark(kernel: Kernel, kind: str, place: int) -> None:
    words = [0] * 10
    words[place] = 77
    [devices] = read(kernel, [qdisc(kind, queue(), attribute(4, struct.pack("=10I", *words)))])
    assert devices[f"{NAME} 8001:"]["marks_total"] == 77


def test_what_is_too_short_is_missing(kernel: Kernel) -> None:
    short = [attribute(1, b"\1" * 8), attribute(3, b"\1" * 16), attribute(4, b"\1" * 8)]
    [devices] = read(kernel, [qdisc("red", *short)])
    assert devices == {f"{NAME} 8001:": {"ifindex": INDEX, "kind": "red", "parent": "root"}}


def test_a_queue_replaced_under_its_handle_is_of_another_generation(kernel: Kernel) -> None:
    sweeps = [[qdisc("tbf", basic(sent, 1), queue())] for sent in (100, 200, 50, 60)]
    readings = read(kernel, *sweeps)
    assert [queues[f"{NAME} 8001:"]["generation"] for queues in readings] == [0, 0, 1, 1]


def test_what_holds_nothing_and_interfaces_that_are_gone_have_no_row(kernel: Kernel) -> None:
    noqueue, gone = qdisc("noqueue", queue(), handle=0), qdisc("tbf", queue(), index=2**31 - 1)
    [devices] = read(kernel, [noqueue, gone, qdisc("pfifo", queue())])
    assert list(devices) == [f"{NAME} 8001:"]


def test_without_queues_it_is_unavailable(kernel: Kernel) -> None:
    with pytest.raises(UnavailableError, match="queueing discipline"):
        read(kernel, [qdisc("noqueue", queue(), handle=0)])


@pytest.mark.parametrize("torn", [b"short", qdisc("tbf", b"\xff\xff\1\0")])
def test_a_torn_message_is_malformed(kernel: Kernel, torn: bytes) -> None:
    with pytest.raises(MalformedError, match="netlink"):
        read(kernel, [torn])


@in_a_namespace
def test_real_congestion_shows_in_the_queue_and_not_in_the_interface_as_in_tc() -> None:
    setup = """
ip link add v0 type veth peer name v1; ip link set v0 up; ip link set v1 up
tc qdisc add dev v0 root handle 1: tbf rate 50mbit burst 64kb latency 1ms"""
    script = """
import json, socket, subprocess, time
from contextlib import suppress
from crosswind.ingest.collectors.network import NetworkCollector
from crosswind.ingest.collectors.qdisc import QdiscCollector
collector = QdiscCollector()
def queue():
    return {sample.device: dict(sample.values) for sample in collector.read()}["v0 1:"]
before = queue()
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
    wire.bind(("v0", 0x0800))
    for _ in range(3000):
        with suppress(OSError):  # no room, which is what shall happen
            wire.send(bytes.fromhex("ffffffffffff" "020000000001" "88b5") + bytes(1400), socket.MSG_DONTWAIT)
while (after := queue())["queued_packets"]:
    time.sleep(0.01)
[tc] = [each for each in json.loads(subprocess.check_output(["tc", "-s", "-j", "qdisc", "show", "dev", "v0"]))]
device = {sample.device: sample.values for sample in NetworkCollector().read()}["v0"]
subprocess.run("tc qdisc del dev v0 root; tc qdisc add dev v0 root handle 1: tbf rate 1mbit burst 9kb latency 1ms",
               shell=True, check=True)
print(json.dumps([before, after, tc, device["transmit_drops_total"], queue()]))
"""
    before, after, tc, transmit_drops, replaced = json.loads(output_of(setup, script))
    assert before["drops_total"] == 0 < after["drops_total"]
    assert after["overlimits_total"] > 0
    assert transmit_drops == 0
    ours = ("sent_bytes_total", "sent_packets_total", "drops_total", "overlimits_total", "requeues_total")
    assert [after[name] for name in ours] == [
        tc[name] for name in ("bytes", "packets", "drops", "overlimits", "requeues")
    ]
    assert (after["kind"], after["backlog_bytes"], tc["backlog"]) == ("tbf", 0, 0)
    assert (after["generation"], replaced["generation"], replaced["drops_total"]) == (0, 1, 0)
