from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crosswind.data.devices.device import Device
from crosswind.models.analytic.networks.transformer import Transformer
from crosswind.models.analytic.networks.workload import Workload
from crosswind.models.analytic.step.memory import activation_bytes, fits, in_flight, memory_use
from crosswind.models.analytic.step.plan import Plan

# Figure 1 of Rajbhandari et al. 2020: 7.5 billion weights on 64 devices need 120, 31.4, 16.6 and 1.9 GB.
SEVEN_BILLION = Workload(layers=1, layer_flops=1.0, layer_parameters=7.5e9, layer_sharded_bytes=0.0)


@pytest.mark.parametrize(("stage", "gigabytes"), [(0, 120.0), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_the_example_of_the_zero_paper(stage: int, gigabytes: float) -> None:
    use = memory_use(SEVEN_BILLION, Plan(ranks=64, data=64, zero_stage=stage))
    assert use.total == pytest.approx(gigabytes * 1e9, abs=0.05e9)  # the paper gives one decimal


def test_tensor_and_pipeline_ranks_share_the_weights(plain: Workload) -> None:
    use = memory_use(plain, Plan(ranks=10, tensor=2, pipeline=5))
    assert use.parameters == 2 * 1e8 / 10
    assert use.optimizer == 12 * 1e8 / 10


def test_schedules_differ_in_micro_batches_in_flight() -> None:
    plan = Plan(ranks=4, pipeline=4, micro_batches=16)
    assert in_flight(replace(plan, schedule="gpipe")) == 16
    assert in_flight(plan) == 4
    assert in_flight(replace(plan, schedule="interleaved", interleave=3)) == 5
    assert in_flight(replace(plan, micro_batches=2)) == 2


def test_recomputation_keeps_inputs_and_one_layer(gpt: Transformer) -> None:
    workload, plan = gpt.workload(), Plan(ranks=1, micro_batch=4)
    assert activation_bytes(workload, plan) == 24 * gpt.layer_activation_bytes(4)
    kept = 24 * 2 * 1024 * 4 * 2048
    assert activation_bytes(workload, replace(plan, recompute=True)) == kept + gpt.layer_activation_bytes(4)


def test_the_host_takes_gradients_and_optimizer(plain: Workload) -> None:
    use = memory_use(plain, Plan(ranks=1, offload="optimizer"))
    assert (use.parameters, use.gradients, use.optimizer) == (2e8, 0, 0)


def test_swapped_activations_need_room_for_two_layers(plain: Workload, device: Device) -> None:
    small = replace(device, memory_bytes=(1.6e9 + 2.5e8) / 0.92)  # weights take 1.6 GB, ten layers 1 GB
    assert not fits(plain, Plan(ranks=1), small)
    assert fits(plain, Plan(ranks=1, offload="activations"), small)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stage=st.integers(0, 2), data=st.integers(1, 1024))
def test_a_higher_zero_stage_never_needs_more(stage: int, data: int, plain: Workload) -> None:
    less, more = (
        memory_use(plain, Plan(ranks=data, data=data, zero_stage=zero_stage)).total for zero_stage in (stage + 1, stage)
    )
    assert less <= more
