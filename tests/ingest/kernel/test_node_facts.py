"""Trees written after /proc and /sys of nodes with H100 (driver 550), MI300A and no accelerator."""

from pathlib import Path

import pytest

from crosswind.data.devices.links import network_named
from crosswind.data.devices.sheets import device_named
from crosswind.data.schema.facts import Facts
from crosswind.ingest.kernel.node_facts import node_facts

CPUINFO = (
    "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Platinum 8480C\ncpu MHz\t\t: 2000\n"
)


def write(root: Path, path: str, content: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)


def with_processors(root: Path) -> Path:
    write(root, "proc/cpuinfo", CPUINFO)
    for number, package in enumerate("0011"):
        write(root, f"sys/devices/system/cpu/cpu{number}/topology/physical_package_id", f"{package}\n")
    return root


def with_port(root: Path, device: str, *, state: str = "4: ACTIVE", layer: str = "InfiniBand", rate: str) -> None:
    for name, text in {"state": state, "link_layer": layer, "rate": rate}.items():
        write(root, f"sys/class/infiniband/{device}/ports/1/{name}", f"{text}\n")


def test_nvidias_open_driver_states_its_version_too(tmp_path: Path) -> None:
    """As an H100's driver states it."""
    line = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (builder@)  \n"
    write(tmp_path, "proc/driver/nvidia/version", f"{line}GCC version:  gcc version 15.3.0 (GCC) \n")
    model = "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 41\nVideo BIOS: \t 96.00.da.00.0c\nGPU Excluded:\t No\n"
    write(tmp_path, "proc/driver/nvidia/gpus/0000:00:06.0/information", model)
    stated = node_facts(tmp_path)
    assert (stated["accelerator"], stated["driver"]) == ("NVIDIA H100 80GB HBM3", "580.159.04")
    device = device_named(str(stated["accelerator"]))
    assert device is not None
    assert (device.name, device.power_watts) == ("H100-SXM", 700)  # as its enforced limit


def test_a_node_names_its_nvidia_gpus_their_driver_and_the_network(tmp_path: Path) -> None:
    root = with_processors(tmp_path)
    version = (
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC version: 12.3.0\n"
    )
    write(root, "proc/driver/nvidia/version", version)
    for bus in ("0000:1b:00.0", "0000:2c:00.0"):
        write(
            root, f"proc/driver/nvidia/gpus/{bus}/information", "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 210\n"
        )
    for number in range(2):
        with_port(root, f"mlx5_{number}", rate="400 Gb/sec (4X NDR)")
    with_port(root, "mlx5_2", layer="Ethernet", rate="100 Gb/sec (4X EDR)")
    with_port(root, "mlx5_3", state="1: DOWN", rate="800 Gb/sec (4X XDR)")
    stated = node_facts(root)
    assert dict(stated) == {
        "accelerator": "NVIDIA H100 80GB HBM3",
        "accelerators_per_node": 2,
        "driver": "550.54.15",
        "processor": "Intel(R) Xeon(R) Platinum 8480C",
        "processors_per_node": 2,
        "interconnect": "2x InfiniBand 400 Gb/sec (4X NDR)",
    }
    facts = Facts.of(stated)
    assert network_named(facts.interconnect or "") == "infiniband ndr"
    assert device_named(facts.accelerator or "") is not None


def test_a_node_names_its_amd_gpus(tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path, f"sys/class/drm/card{number}/device/vendor", "0x1002\n")
        write(tmp_path, f"sys/class/drm/card{number}/device/product_name", "AMD Instinct MI300A\n")
    write(tmp_path, "sys/class/drm/card9/device/vendor", "0x1a03\n")  # the service processor's display
    write(tmp_path, "sys/module/amdgpu/version", "6.8.5\n")
    write(tmp_path, "sys/class/cxi/cxi0/device/vendor", "0x17db\n")
    assert dict(node_facts(tmp_path)) == {
        "accelerator": "AMD Instinct MI300A",
        "accelerators_per_node": 4,
        "driver": "6.8.5",
        "interconnect": "1x Slingshot",
    }


def test_a_node_without_a_trace_of_an_accelerator_has_none(tmp_path: Path) -> None:
    assert node_facts(with_processors(tmp_path))["accelerators_per_node"] == 0


@pytest.mark.parametrize("trace", ["dev/accel/accel0", "dev/kfd", "proc/driver/nvidia/gpus/0000:1b:00.0/registry"])
def test_an_accelerator_that_nothing_names_is_not_counted_as_none(tmp_path: Path, trace: str) -> None:
    write(with_processors(tmp_path), trace, "")
    assert "accelerators_per_node" not in node_facts(tmp_path)


def test_an_empty_tree_and_one_of_garbage_state_nothing_that_is_no_fact(tmp_path: Path) -> None:
    assert dict(node_facts(tmp_path)) == {"accelerators_per_node": 0}
    garbage = tmp_path / "garbage"
    (garbage / "proc/driver/nvidia/gpus/x").mkdir(parents=True)
    (garbage / "proc/driver/nvidia/gpus/x/information").write_bytes(b"Model: \xff\x00\x1b[2J" + b"y" * 50_000)
    (garbage / "proc/cpuinfo").write_bytes(b"\xff\xfe" * 40_000)
    Facts.of(node_facts(garbage))
    assert node_facts(garbage)["accelerator"].startswith("\\xff\\x00\\x1b")  # type: ignore[union-attr]
