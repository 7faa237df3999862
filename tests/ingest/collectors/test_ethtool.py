import ctypes
import errno
import os
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from tests.ingest.namespace import in_a_namespace, output_of

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.collectors.ethtool import ETHTOOL, MATCH, SOURCE, EthtoolCollector
from crosswind.ingest.collectors.source import Host, Options
from crosswind.ingest.kernel.ethtool_ioctl import Driver, Ethtool

LO = socket.if_nameindex()[0][1].encode()  # every namespace has it, so a fake kernel can answer for it


@dataclass
class Kernel:
    """The ioctl of a kernel whose one interface has these statistics."""

    statistics: Mapping[str, int]
    index: int = 3
    driver: bytes = b"mlx5_core"
    asked: list[int] = field(default_factory=list)

    def __call__(self, _: socket.socket, request: int, argument: bytes) -> bytes:
        if argument[:16].rstrip(b"\0") != LO:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        if request == 0x8933:
            return argument[:16] + struct.pack("=i20x", self.index)
        assert (request, len(argument)) == (0x8946, 40)
        address = struct.unpack_from("@P", argument, 16)[0]
        command = struct.unpack("=I", ctypes.string_at(address, 4))[0]
        self.asked.append(command)
        answer = {0x03: self._driver, 0x37: self._count, 0x1B: self._names, 0x1D: self._values}[command](address)
        ctypes.memmove(address, answer, len(answer))
        return argument

    def _driver(self, _: int) -> bytes:
        count = len(self.statistics)
        texts = struct.pack("=I32s32s32s32s32s12x", 3, self.driver, b"6.8.0", b"28.39.1002", b"0000:c1:00.0", b"")
        return texts + struct.pack("=IIIII", 0, count, 0, 0, 0)

    def _count(self, address: int) -> bytes:
        command, reserved, mask = struct.unpack("=IIQ", ctypes.string_at(address, 16))
        assert (command, reserved, mask) == (0x37, 0, 2)
        return struct.pack("=IIQI", 0x37, 0, 2, len(self.statistics))

    def _names(self, address: int) -> bytes:
        assert struct.unpack("=II", ctypes.string_at(address, 8)) == (0x1B, 1)
        head = struct.pack("=III", 0x1B, 1, len(self.statistics))
        return head + b"".join(struct.pack("32s", name.encode()) for name in self.statistics)

    def _values(self, _: int) -> bytes:
        head = struct.pack("=II", 0x1D, len(self.statistics))
        return head + struct.pack(f"={len(self.statistics)}Q", *self.statistics.values())


ADAPTER = {
    "rx_packets": 10,
    "rx_out_of_buffer": 2,
    "rx_prio3_pause": 2**64 - 1,
    "rx_prio3_pause_duration": 5,
    "tx_queue_dropped": 6,
    "rx_corrected_bits_phy": 7,
    "rx_discards_phy": 8,
    "np_ecn_marked_roce_packets": 9,
}


def collector(kernel: Kernel, match: tuple[str, ...] = MATCH) -> EthtoolCollector:
    return EthtoolCollector(match, (LO.decode(),), Ethtool(kernel))


def values(samples: EthtoolCollector) -> dict[object, object]:
    return {sample.values["statistic"]: sample.values["value_total"] for sample in samples.read()}


def test_a_driver_reports_its_name_and_the_statistics_theirs() -> None:
    ethtool = Ethtool(Kernel(ADAPTER))
    assert ethtool.driver(LO) == Driver("mlx5_core", "6.8.0")
    assert ethtool.names(LO) == tuple(ADAPTER)
    assert list(ethtool.values(LO, len(ADAPTER))) == list(ADAPTER.values())
    assert ethtool.index(LO) == 3


def test_rows_are_the_statistics_of_congestion_and_loss() -> None:
    first, *_ = samples = list(collector(Kernel(ADAPTER)).read())
    assert first.device == LO.decode()
    assert dict(first.values) == {
        "statistic": "rx_out_of_buffer",
        "value_total": 2,
        "ifindex": 3,
        "driver": "mlx5_core",
        "driver_version": "6.8.0",
    }
    assert [(sample.values["statistic"], sample.values["value_total"]) for sample in samples[1:]] == [
        ("rx_prio3_pause", 2**64 - 1),
        ("rx_prio3_pause_duration", 5),
        ("tx_queue_dropped", 6),
        ("rx_discards_phy", 8),
        ("np_ecn_marked_roce_packets", 9),
    ]
    assert ETHTOOL["value_total"].dtype == "uint64"


def test_what_matches_is_a_setting() -> None:
    chosen = SOURCE.make(Host(), Options("ethtool", {"match": ["BITS"], "interfaces": ["eth9"]}))
    assert isinstance(chosen, EthtoolCollector)
    assert (chosen.match, chosen.interfaces) == (("bits",), ("eth9",))
    assert values(collector(Kernel(ADAPTER), ("bits",))) == {"rx_corrected_bits_phy": 7}


def test_names_are_read_once_and_values_in_one_call() -> None:
    kernel = Kernel(ADAPTER)
    reading = collector(kernel)
    assert len(values(reading)) == 6
    assert kernel.asked == [0x03, 0x37, 0x1B, 0x1D]
    values(reading)
    assert kernel.asked[4:] == [0x1D]


@pytest.mark.parametrize("index", [3, 8])
def test_names_are_read_again_when_their_number_changes(index: int) -> None:
    kernel = Kernel(ADAPTER)
    reading = collector(kernel)
    values(reading)
    kernel.statistics, kernel.index = {"rx_drops": 1} | ADAPTER, index
    assert values(reading)["rx_drops"] == 1


def test_an_interface_made_again_is_distinguished_and_read_again() -> None:
    kernel = Kernel({"rx_drops": 1, "rx_bytes": 2})
    reading = collector(kernel)
    values(reading)
    kernel.statistics, kernel.index = {"rx_bytes": 3, "rx_drops": 4}, 8
    [sample] = reading.read()
    assert (sample.values["value_total"], sample.values["ifindex"]) == (4, 8)


def test_an_interface_that_goes_takes_its_rows_with_it() -> None:
    kernel = Kernel(ADAPTER)
    reading = collector(kernel)
    assert len(list(reading.read())) == 6

    def gone(*_: object) -> bytes:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))

    Ethtool.__init__(reading.ethtool, gone)
    assert list(reading.read()) == []
    with pytest.raises(UnavailableError, match="SIOCETHTOOL"):
        list(reading.read())


def test_a_name_that_is_repeated_is_the_first() -> None:
    kernel = Kernel({"drops\0a": 1, "drops\0b": 2, "\0": 3})
    assert values(collector(kernel, ("",))) == {"drops": 1}


@pytest.mark.parametrize("statistics", [{}, {"rx_packets": 1}])
def test_without_such_statistics_it_is_unavailable(statistics: dict[str, int]) -> None:
    reading = collector(Kernel(statistics))
    assert not reading.available()
    with pytest.raises(UnavailableError, match="SIOCETHTOOL"):
        list(reading.read())


def test_a_count_that_cannot_be_is_refused() -> None:
    class Hostile(Kernel):
        def _count(self, address: int) -> bytes:
            return struct.pack("=IIQI", 0x37, 0, 2, 2**32 - 1)

    with pytest.raises(MalformedError, match="4294967295 statistics"):
        Ethtool(Hostile(ADAPTER)).names(LO)


@in_a_namespace
def test_a_real_pair_of_virtual_interfaces_reports_its_statistics() -> None:
    setup = "ip link add v0 type veth peer name v1; ip link set v0 up; ip link set v1 up"
    script = """
import subprocess
from crosswind.ingest.collectors.ethtool import EthtoolCollector
everything = EthtoolCollector(("",), ("v0",))
rows = {sample.values["statistic"]: sample.values for sample in everything.read()}
index = {"v1": int(open("/proc/net/igmp").read().split("v1")[0].split()[-1])}
print(rows["peer_ifindex"]["value_total"] == index["v1"], rows["peer_ifindex"]["driver"])
print(len(rows), rows["rx_queue_0_drops"]["value_total"])
chosen = EthtoolCollector(interfaces=("v0",))
print(EthtoolCollector().available(), [sample.values["statistic"] for sample in chosen.read()])
another = "ip link del v0; ip link add v0 numrxqueues 2 numtxqueues 2 type veth peer name v1"
subprocess.run(another, shell=True, check=True)
again = {sample.values["statistic"]: sample.values["ifindex"] for sample in everything.read()}
print(len(again), set(again.values()) != {rows["peer_ifindex"]["ifindex"]}, "rx_queue_1_drops" in again)
"""
    peer, count, chosen, again = output_of(setup, script).splitlines()
    assert peer == "True veth"
    assert count == "10 0"
    assert chosen.startswith("False ['rx_queue_0_drops', 'rx_queue_0_xdp_drops'")
    assert again.endswith("True True")
