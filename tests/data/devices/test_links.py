import pytest

from crosswind.data.devices.links import network_named


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("8x NDR InfiniBand 400Gb/s", "infiniband ndr"),
        ("8x Infiniband:  Data bandwidth 400Gb/s", "infiniband ndr"),
        ("4x Mellanox HDR200 InfiniBand ConnectX 6", "infiniband hdr"),
        ("4 dual-port Mellanox MT27800 (ConnectX-5) EDR InfiniBand network cards", "infiniband edr"),
        ("infiniband", "infiniband"),
        ("HPE Cray Slingshot", "slingshot"),
        ("Cray Aries", "aries"),
        ("TofuD interconnect [68GB/s x2 (in/out)]", "tofu"),
        ("Intel Omni-Path 100", "omni-path"),
        ("Elastic Fabric Adapter", "efa"),
        ("2x 10GbE Ethernet", "ethernet"),
        ("1x RoCE 100 Gb/sec (4X EDR)", "ethernet"),
        ("NVIDIA Mellanox ConnectX-6", None),
        ("", None),
        ("N/A", None),
    ],
)
def test_a_network_is_known_by_the_words_that_systems_have_for_it(text: str, family: str | None) -> None:
    assert network_named(text) == family
