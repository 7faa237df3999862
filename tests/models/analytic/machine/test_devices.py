import math

import pytest

from crosswind.models.analytic.machine.devices import DEVICES, device_named


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
        assert device.memory_bytes > 0
        assert 2015 < device.year < 2027
