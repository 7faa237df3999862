import math

import pytest

from crosswind.data.devices.sheets import DEVICES, device_named


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("NVIDIA A100-SXM4-80GB (400W)", "A100-SXM-80GB"),
        ("NVIDIA A100-SXM4-40GB(400W)", "A100-SXM-40GB"),
        ("A100-SXM40", "A100-SXM-40GB"),
        ("NVIDIA A100", "A100-SXM-80GB"),
        ("NVIDIA A100 - PCIe - 80 GB", "A100-PCIe-80GB"),
        ("NVIDIA A100-PCIE-40GB (250W)", "A100-PCIe-40GB"),
        ("NVIDIA A30-PCIE-24GB", "A30"),
        ("NVIDIA A10G", "A10G"),
        ("a40", "A40"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM"),
        ("H100 NVL Tensor Core GPU (PCIe)", "H100-NVL"),
        ("NVIDIA H100-PCIe-80GB", "H100-PCIe"),
        ("NVIDIA H200-SXM5-141GB", "H200"),
        ("NVIDIA Blackwell GPU (B200-SXM-180GB)", "B200"),
        ("GB200 NVL72", "GB200"),
        ("8xXE9680x8H100-SXM-80GB", "H100-SXM"),
        ("R750xax4A100-PCIE-80GB", "A100-PCIe-80GB"),
        ("NVIDIA GB300 Grace Blackwell Ultra", "GB300"),
        ("NVIDIA Grace Blackwell Superchip", "GB200"),
        ("NVIDIA GH200 480GB", "GH200"),
        ("NVIDIA GH200 144G HBM3e", "GH200-144GB"),
        ("NVIDIA Grace Hopper Superchip", "GH200"),
        ("NVIDIA Grace CPU Superchip", "Grace"),
        ("NVIDIA H800", "H800"),
        ("NVIDIA A800-SXM4-80GB", "A800-SXM-80GB"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX-PRO-6000-Max-Q"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX-6000-Ada"),
        ("AMD Instinct MI300A Accelerator", "MI300A"),
        ("AMD Instinct MI350X", "MI350X"),
        ("MI355X", "MI355X"),
        ("TPU v7 Ironwood", "TPUv7"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA L40", "L40"),
        ("NVIDIA V100-SXM3-32GB (350W)", "V100-SXM3"),
        ("Nvidia Tesla V100S-PCIe-32GB", "V100S-PCIe"),
        ("Tesla V100-SXM2-16GB", "V100-SXM2"),
        ("NVIDIA P100-PCIE-16GB", "P100-PCIe"),
        ("NVIDIA GeForce RTX 4090", "RTX4090"),
        ("RTX4090", "RTX4090"),
        ("NVIDIA RTX A5000", "RTX-A5000"),
        ("QuadroRTX5000", "QuadroRTX5000"),
        ("AMD Radeon RX 7900 XTX", "RX7900XTX"),
        ("RX7900XTX", "RX7900XTX"),
        ("AMD Instinct MI250X", "MI250X"),
        ("tpu-v4-4096-TF", "TPUv4"),
        ("cloud-tpu-v5p-1024-maxtext", "TPUv5p"),
        ("TPU-trillium", "TPUv6e"),
        ("Habana Gaudi HL-205", "Gaudi"),
        ("Intel(R) Gaudi(R) 2 AI Accelerator", "Gaudi2"),
        ("Gaudi3", "Gaudi3"),
        ("Intel Data Center GPU Max 1550", "Max1550"),
        ("Graphcore Bow IPU", "IPU-Bow"),
        ("Graphcore IPU GC200", "IPU-GC200"),
        ("Ascend 910 Premium A", "Ascend910-Premium"),
        ("Ascend910", "Ascend910"),
        ("FUJITSU Processor A64FX", "A64FX"),
        ("Intel(R) Xeon(R) Platinum 8480+ @ 2.00GHz", "Xeon-8480+"),
        ("Intel Xeon Phi Processor 7250", "XeonPhi-7250"),
    ],
)
def test_a_device_is_known_by_the_names_that_systems_give_it(text: str, name: str) -> None:
    device = device_named(text)
    assert device is not None
    assert device.name == name


@pytest.mark.parametrize("text", ["", "N/A", "CPU", "TPU", "RTX 1000", "A1000", "L400", "T400"])
def test_what_is_not_recognised_is_none(text: str) -> None:
    assert device_named(text) is None


def test_every_device_is_found_by_its_own_name_which_no_other_has() -> None:
    assert len({device.name for device in DEVICES}) == len(DEVICES)
    for device in DEVICES:
        assert device_named(device.name) == device


def test_a_peak_is_in_operations_a_second_and_memory_in_bytes() -> None:
    device = device_named("A100-SXM80")
    assert device is not None
    assert (device.flops_16bit, device.memory_bytes_per_second, device.memory_bytes) == (312e12, 2.039e12, 80e9)


def test_no_figure_is_zero_or_negative_and_what_is_unpublished_is_nan() -> None:
    for device in DEVICES:
        for figure in (device.flops_16bit, device.flops_32bit, device.memory_bytes_per_second, device.power_watts):
            assert math.isnan(figure) or figure > 0
        for figure in (device.flops_8bit, device.flops_4bit, device.link_bytes_per_second):
            assert math.isnan(figure) or figure > 0
        assert device.memory_bytes > 0
        assert 2015 < device.year < 2027


@pytest.mark.parametrize(
    ("text", "peaks"),
    [
        ("H100", (989e12, 494e12, 1979e12, math.nan)),
        ("B200", (2250e12, 1125e12, 4500e12, 9000e12)),
        ("MI355X", (2516.6e12, 157.3e12, 5033.2e12, 10066.3e12)),
        ("A100-SXM4-80GB", (312e12, 156e12, math.nan, math.nan)),
    ],
)
def test_low_precision_has_a_peak_where_the_device_has_the_format(text: str, peaks: tuple[float, ...]) -> None:
    device = device_named(text)
    assert device is not None
    stated = (device.flops_16bit, device.flops_32bit, device.flops_8bit, device.flops_4bit)
    assert stated == pytest.approx(peaks, nan_ok=True)


def test_a_format_that_a_device_lacks_runs_at_the_next_wider_ones_rate() -> None:
    a100, h100, b200 = (device_named(name) for name in ("A100", "H100", "B200"))
    assert a100 is not None
    assert h100 is not None
    assert b200 is not None
    assert (a100.fastest_8bit, a100.fastest_4bit) == (a100.flops_16bit, a100.flops_16bit)
    assert (h100.fastest_8bit, h100.fastest_4bit) == (h100.flops_8bit, h100.flops_8bit)
    assert (b200.fastest_8bit, b200.fastest_4bit) == (b200.flops_8bit, b200.flops_4bit)


def test_narrower_formats_are_no_slower_and_links_are_slower_than_memory() -> None:
    for device in DEVICES:
        assert not device.fastest_8bit < device.flops_16bit
        assert not device.fastest_4bit < device.fastest_8bit
        assert not device.link_bytes_per_second > device.memory_bytes_per_second


def test_every_figure_has_its_source() -> None:
    assert [device.name for device in DEVICES if not device.source] == []


@pytest.mark.parametrize(
    "name",
    [
        *("V100", "A100-40GB", "A100-80GB", "H100 SXM", "H100 PCIe", "H100 NVL", "H200", "GH200", "B200", "GB200"),
        *("B300", "GB300", "L4", "L40S", "A40", "A10", "T4", "P100", "RTX 3090", "RTX 4090", "RTX 5090"),
        *("RTX PRO 6000", "MI100", "MI210", "MI250X", "MI300A", "MI300X", "MI325X", "MI350X", "MI355X"),
        *("TPU v2", "TPU v3", "TPU v4", "TPU v5e", "TPU v5p", "TPU v6e", "TPU v7", "Gaudi", "Gaudi 2", "Gaudi 3"),
        *("Grace", "Data Center GPU Max 1550", "Xeon Platinum 8480+", "EPYC 9654"),
    ],
)
def test_the_devices_that_people_train_on_are_in_the_table(name: str) -> None:
    assert device_named(name) is not None
