import shutil
import time
from pathlib import Path

import pytest
from tests.ingest.namespace import in_a_namespace, output_of
from tests.ingest.trees import recorded_tree

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.collectors.network import NETWORK, NetworkCollector
from crosswind.ingest.kernel.kernel_files import KernelFiles

TREE = recorded_tree("two_cores")
HEADINGS = "Inter-|   Receive\n face |bytes packets\n"


def of(root: Path) -> NetworkCollector:
    return NetworkCollector(root / "proc", KernelFiles(), root / "sys")


def recorded(device: str) -> dict[str, object]:
    [values] = [dict(sample.values) for sample in of(TREE).read() if sample.device == device]
    return values


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(TREE, tmp_path / "root")
    return tmp_path / "root"


def test_each_interface_is_a_device() -> None:
    assert [sample.device for sample in of(TREE).read()] == ["lo", "ifb0", "ifb1", "eth0"]


def test_received_and_sent_are_distinguished() -> None:
    values = recorded("eth0")
    assert (values["receive_bytes_total"], values["receive_packets_total"]) == (466641190, 19739)
    assert (values["transmit_bytes_total"], values["transmit_packets_total"]) == (530635, 6060)


def test_every_place_of_the_line_goes_to_its_column(tmp_path: Path) -> None:
    (tmp_path / "proc" / "net").mkdir(parents=True)
    line = f"{HEADINGS}  ib0:{' '.join(str(place) for place in range(100, 116))}\n"
    (tmp_path / "proc" / "net" / "dev").write_text(line)
    first = next(iter(of(tmp_path).read()))
    assert first.device == "ib0"
    assert list(first.values.values()) == [100, 101, 102, 103, 104, 105, 108, 109, 110, 111, 112, 114]


def test_a_counter_that_its_driver_made_negative_is_missing_and_hides_no_other(root: Path) -> None:
    dev = root / "proc/net/dev"
    dev.write_text(dev.read_text().replace("466641190", str(2**64 - 3)))
    values = {sample.device: sample.values for sample in of(root).read()}
    assert "receive_bytes_total" not in values["eth0"]
    assert values["eth0"]["receive_packets_total"] == 19739


def test_a_link_reports_its_speed_state_and_number() -> None:
    values = recorded("eth0")
    link = ("ifindex", "carrier_changes_total", "speed_bytes_per_second", "mtu_bytes", "carrier", "operstate")
    assert [values[name] for name in link] == [4, 2, 25000, 1400, 1, "up"]
    assert NETWORK["speed_bytes_per_second"].scale == 125_000  # 25000 Mbit/s are 3.125 GB/s


def test_a_link_that_is_down_has_neither_speed_nor_carrier() -> None:
    values = recorded("ifb0")
    assert values.keys().isdisjoint({"speed_bytes_per_second", "carrier"})
    assert (values["operstate"], values["mtu_bytes"]) == ("down", 1500)


@pytest.mark.parametrize("speed", ["-1", "0", "4294967295", "", "fast", "9" * 30])
def test_a_speed_that_nobody_knows_is_missing(root: Path, speed: str) -> None:
    (root / "sys/class/net/eth0/speed").write_text(f"{speed}\n")
    [eth0] = [sample for sample in of(root).read() if sample.device == "eth0"]
    assert "speed_bytes_per_second" not in eth0.values


@pytest.mark.parametrize("sign", ["ifindex", "carrier_changes"])
def test_the_state_of_a_link_is_read_again_when_it_changes(root: Path, sign: str) -> None:
    collector, folder = of(root), root / "sys/class/net/eth0"
    assert speed_of(collector) == 25000
    (folder / "speed").write_text("100000\n")
    assert speed_of(collector) == 25000
    (folder / sign).write_text("7\n")
    assert speed_of(collector) == 100000


def test_the_state_of_a_link_is_read_again_after_a_while(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collector = of(root)
    assert speed_of(collector) == 25000
    (root / "sys/class/net/eth0/speed").write_text("100000\n")
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 61)
    assert speed_of(collector) == 100000


def speed_of(collector: NetworkCollector) -> object:
    [eth0] = [sample for sample in collector.read() if sample.device == "eth0"]
    return eth0.values["speed_bytes_per_second"]


def test_while_no_link_is_announced_an_unchanged_line_gives_the_very_same_row(root: Path) -> None:
    collector, dev = quiet(root), root / "proc/net/dev"
    lo, ifb0, _, eth0 = collector.read_rows()
    dev.write_text(dev.read_text().replace("466641190", "466641191"))
    again = collector.read_rows()
    assert again[0] is lo
    assert again[1] is ifb0
    assert again[3][:2] == ("eth0", 466641191)
    assert again[3][2:] == eth0[2:]


def test_while_no_link_is_announced_links_are_looked_at_after_a_while(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector = quiet(root)
    assert speed_of(collector) == 25000
    (root / "sys/class/net/eth0/speed").write_text("100000\n")
    (root / "sys/class/net/eth0/carrier_changes").write_text("7\n")
    assert speed_of(collector) == 25000
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 11)
    assert speed_of(collector) == 100000


def quiet(root: Path) -> NetworkCollector:
    return NetworkCollector(root / "proc", KernelFiles(), root / "sys", lambda: False)


def test_an_interface_without_sysfs_keeps_its_counters(root: Path) -> None:
    shutil.rmtree(root / "sys")
    assert [len(sample.values) for sample in of(root).read()] == [12, 12, 12, 12]


def test_an_interface_that_went_is_gone_and_comes_back_as_another(root: Path) -> None:
    collector, dev = of(root), root / "proc/net/dev"
    lines = dev.read_text()
    assert len(list(collector.read())) == 4
    dev.write_text("".join(line for line in lines.splitlines(keepends=True) if "eth0" not in line))
    assert [sample.device for sample in collector.read()] == ["lo", "ifb0", "ifb1"]
    dev.write_text(lines)
    (root / "sys/class/net/eth0/ifindex").write_text("9\n")
    assert [sample.values["ifindex"] for sample in collector.read() if sample.device == "eth0"] == [9]


@pytest.mark.parametrize("text", ["", "garbage\n", HEADINGS + "eth0: 1 2 3\n", HEADINGS + "eth0:" + " x" * 16 + "\n"])
def test_a_garbled_file_is_malformed(root: Path, text: str) -> None:
    (root / "proc/net/dev").write_text(text)
    with pytest.raises(MalformedError, match="net/dev"):
        list(of(root).read())


@in_a_namespace
@pytest.mark.parametrize("made", ["NetworkCollector()", 'SOURCE.make(Host(), Options("network"))'])
def test_a_real_link_that_comes_and_goes_changes_its_counter_and_its_number(made: str) -> None:
    setup = "mount -t sysfs none /sys; ip link add v0 type veth peer name v1; ip link set v0 up; ip link set v1 up"
    script = f"""
import subprocess
from crosswind.ingest.collectors.network import SOURCE, NetworkCollector
from crosswind.ingest.collectors.source import Host, Options
collector = {made}
def link():
    return {{sample.device: sample.values for sample in collector.read()}}["v0"]
def show(*names):
    print(*[link().get(name) for name in names])
show("carrier", "operstate", "speed_bytes_per_second", "mtu_bytes")
before = link()
subprocess.run("ip link set v1 down; ip link set v1 up; ip link set v1 down", shell=True, check=True)
print(link()["carrier_changes_total"] - before["carrier_changes_total"])
show("carrier", "operstate")
subprocess.run("ip link del v0; ip link add v0 type veth peer name v1", shell=True, check=True)
print(link()["ifindex"] - before["ifindex"] > 0)
"""
    first, changes, state, anew = output_of(setup, script).splitlines()
    assert first == "1 up 10000 1500"
    assert (changes, state, anew) == ("3", "0 lowerlayerdown", "True")


@in_a_namespace
def test_interfaces_that_come_and_go_leave_no_open_files() -> None:
    script = """
import os, subprocess
from crosswind.ingest.collectors.network import NetworkCollector
collector = NetworkCollector()
def opened():
    devices = [sample.device for sample in collector.read()]
    return len(os.listdir("/proc/self/fd")), [device for device in devices if device.startswith("pod")]
opened()  # also what is read rarely
print(opened()[0])
for turn in range(3):
    subprocess.run(f"ip link add pod{turn} type veth peer name v1", shell=True, check=True)
    print(opened()[1])
    subprocess.run(f"ip link del pod{turn}", shell=True, check=True)
print(opened()[0])
"""
    first, *devices, last = output_of("mount -t sysfs none /sys", script).splitlines()
    assert devices == ["['pod0']", "['pod1']", "['pod2']"]
    assert first == last


@in_a_namespace
@pytest.mark.parametrize("made", ["NetworkCollector()", 'SOURCE.make(Host(), Options("network"))'])
def test_links_that_change_their_names_between_two_looks_are_read_by_the_new_ones(made: str) -> None:
    setup = "mount -t sysfs none /sys; ip link add v0 type veth peer name v1; ip link set v1 mtu 1400"
    script = f"""
import subprocess
from crosswind.ingest.collectors.network import SOURCE, NetworkCollector
from crosswind.ingest.collectors.source import Host, Options
collector = {made}
def links():
    rows = {{sample.device: sample.values for sample in collector.read()}}
    return [(rows[name]["ifindex"], rows[name]["mtu_bytes"]) for name in ("v0", "v1")]
first, second = links()
print(first[1], second[1])
swap = "ip link set v0 name v2; ip link set v1 name v0; ip link set v2 name v1"
subprocess.run(swap, shell=True, check=True)
print(links() == [second, first], links() == [second, first])
"""
    assert output_of(setup, script) == "1500 1400\nTrue True\n"
