"""A machine whose figures are easy to reckon with."""

import pytest
from hypothesis import settings

from crosswind.data.devices.device import Device
from crosswind.models.analytic.machine.constants import Constants
from crosswind.models.analytic.machine.links import Link
from crosswind.models.analytic.machine.machine import Machine
from crosswind.models.analytic.networks.transformer import Transformer
from crosswind.models.analytic.networks.workload import Workload

settings.register_profile("shared machine", deadline=None)  # where others compute too, an example may take a second
settings.load_profile("shared machine")


@pytest.fixture
def device() -> Device:
    return Device("round", 1e14, 5e13, 1e12, 80e9, 400.0, 2024)


@pytest.fixture
def machine(device: Device) -> Machine:
    """All of what the data sheets say is reached, and nothing is launched or started."""
    whole = Constants(
        compute_efficiency=1.0,
        memory_efficiency=1.0,
        kernel_start_seconds=1e-15,
        kernel_launch_seconds=1e-15,
        inside_efficiency=1.0,
        between_efficiency=1.0,
        transfer_efficiency=1.0,
        overlap_ratio=0.5,
        host_efficiency=1.0,
        step_overhead_seconds=1e-15,
    )
    return Machine(
        device, Link(1e-5, 1e11), Link(2e-5, 5e10), Link(1e-5, 2e10), host_memory_bytes_per_second=2e10, constants=whole
    )


@pytest.fixture
def plain() -> Workload:
    """Ten layers of 1 TFLOP a sample, 10 million weights each, 100 MB kept and 1 MB handed on a sample."""
    return Workload(
        layers=10,
        layer_flops=1e12,
        layer_parameters=1e7,
        layer_sharded_bytes=1e8,
        boundary_bytes=1e6,
        tensor_all_reduces=4,
    )


@pytest.fixture
def gpt() -> Transformer:
    return Transformer(layers=24, hidden=2048, heads=16, sequence=1024, vocabulary=51200)
