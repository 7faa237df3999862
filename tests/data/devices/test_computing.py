import pytest

from crosswind.data.devices.computing import computing_device
from crosswind.data.schema.facts import Facts


@pytest.mark.parametrize(
    ("facts", "configuration", "device"),
    [
        (Facts(accelerator="NVIDIA H100 80GB HBM3"), {}, "H100-SXM"),
        (Facts(accelerator="NVIDIA H100 80GB HBM3"), {"accelerator": "A100"}, "H100-SXM"),
        (Facts(), {"accelerator": "A100"}, "A100-SXM-80GB"),
        (Facts(processor="Intel Xeon Platinum 8480+", accelerators_per_node=0), {}, "Xeon-8480+"),
        (Facts(processor="Intel Xeon Platinum 8480+"), {}, ""),
        (Facts(accelerator="Abacus 3"), {}, "Abacus 3"),
        (Facts(), {"accelerator": False}, ""),
    ],
)
def test_the_device_that_computes(facts: Facts, configuration: dict[str, str | bool], device: str) -> None:
    assert computing_device(facts, configuration) == device
