import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.networks.operators import Convolution, Dense, network


def test_a_dense_layer_by_hand() -> None:
    layer = Dense(3, 5)
    assert (layer.flops, layer.parameters, layer.output_elements) == (30, 20, 5)


def test_the_first_convolution_of_resnet_by_hand() -> None:
    layer = Convolution(inputs=3, outputs=64, kernel=7, height=112, width=112)
    assert layer.flops == 2 * 49 * 3 * 64 * 112 * 112  # 236 MFLOP
    assert layer.parameters == 49 * 3 * 64 + 64


def test_groups_divide_the_work() -> None:
    whole, grouped = (Convolution(32, 32, 3, 8, 8, groups=groups).flops for groups in (1, 32))
    assert whole == 32 * grouped


def test_a_network_is_the_sum_of_its_operators() -> None:
    workload = network([Dense(100, 200), Dense(200, 10)])
    assert workload.flops == pytest.approx(3 * 2 * (100 * 200 + 200 * 10))  # forward, and twice that backward
    assert workload.parameters == pytest.approx(101 * 200 + 201 * 10)
    assert workload.layers * workload.layer_sharded_bytes == pytest.approx(2 * 210)


def test_impossible_networks_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="operators are none"):
        network([])
    with pytest.raises(InvalidInputError, match="groups is 3, expected to divide inputs = 4"):
        Convolution(4, 6, 3, 8, 8, groups=3)
