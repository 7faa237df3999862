import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.networks.transformer import Transformer


def test_flops_are_those_of_narayanan() -> None:
    layers, hidden, sequence, vocabulary, batch = 24, 2304, 2048, 51200, 512
    model = Transformer(layers=layers, hidden=hidden, heads=24, sequence=sequence, vocabulary=vocabulary)
    matrices = 96 * batch * sequence * layers * hidden**2
    paper = matrices * (1 + sequence / (6 * hidden) + vocabulary / (16 * layers * hidden))
    assert model.flops(batch, recompute=True) == pytest.approx(paper)


def test_without_recomputation_a_layer_costs_three_quarters(gpt: Transformer) -> None:
    layers, again = (24 * gpt.workload(recompute=recompute).layer_flops for recompute in (False, True))
    assert layers == pytest.approx(0.75 * again)
    assert gpt.flops(3) == pytest.approx(3 * gpt.workload().flops)


def test_gpt_3_has_175_billion_parameters() -> None:
    gpt3 = Transformer(layers=96, hidden=12288, heads=96, sequence=2048, vocabulary=50257)
    assert gpt3.parameters == pytest.approx(175e9, rel=0.01)  # the paper rounds
    assert gpt3.gradient_bytes() == 2 * gpt3.parameters
    assert gpt3.workload().parameters == pytest.approx(gpt3.parameters)


def test_activations_are_those_of_korthikanti(gpt: Transformer) -> None:
    sbh, ratio = 1024 * 4 * 2048, 16 * 1024 / 2048
    assert gpt.layer_activation_bytes(4) == sbh * (34 + 5 * ratio)
    assert gpt.layer_activation_bytes(4, tensor=8) == sbh * (10 + 24 / 8 + 5 * ratio / 8)
    assert gpt.layer_activation_bytes(4, tensor=8, sequence_parallel=True) == sbh * (34 + 5 * ratio) / 8


def test_recomputation_reduces_activations_six_times_a_layer(gpt: Transformer) -> None:
    assert gpt.workload(recompute=True).tensor_all_reduces == 6
    assert gpt.workload().tensor_all_reduces == 4


def test_a_model_without_layers_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="layers is 0"):
        Transformer(layers=0, hidden=1, heads=1, sequence=1, vocabulary=1)
