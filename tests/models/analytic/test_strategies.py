"""Steps by hand: a layer takes 1 TFLOP / 100 TFLOP/s = 10 ms and moves 3 x 100 MB / 1 TB/s = 0.3 ms a sample."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crosswind.data.devices.device import Device
from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.machine.machine import Machine, machine_of
from crosswind.models.analytic.networks.workload import Workload
from crosswind.models.analytic.step.plan import Plan
from crosswind.models.analytic.step.stage import UPDATE_BYTES, stage_time
from crosswind.models.analytic.strategies import STRATEGIES, strategy_named
from crosswind.models.analytic.strategies.data_parallel import exposed
from crosswind.models.analytic.strategies.offload import swapped_ratio
from crosswind.models.analytic.strategies.parameter_server import exchange_seconds, progress_ratio, staleness
from crosswind.models.analytic.strategies.pipeline import bubble_ratio
from crosswind.models.analytic.strategies.strategy import StepTime
from crosswind.models.analytic.strategies.zero import moved_bytes

LAYER = 10e-3 + 0.3e-3
PLANS = {
    "data_parallel": Plan(ranks=8, data=8),
    "zero": Plan(ranks=8, data=8, zero_stage=3),
    "tensor": Plan(ranks=8, tensor=8),
    "pipeline": Plan(ranks=8, pipeline=8, micro_batches=16),
    "hybrid": Plan(ranks=8, data=2, tensor=2, pipeline=2, micro_batches=4),
    "parameter_server": Plan(ranks=8, data=8, servers=2),
    "offload": Plan(ranks=8, data=8, offload="optimizer"),
}
# Machines and workloads are never changed, so examples may share them.
SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def step(name: str, workload: Workload, machine: Machine, **plan: Any) -> StepTime:
    return strategy_named(name).step(workload, Plan(**plan), machine)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.name)
def test_every_strategy_has_a_plan_whose_parts_add_up(strategy: Any, plain: Workload, machine: Machine) -> None:
    step_time = strategy.step(plain, PLANS[strategy.name], machine)
    parts = [step_time.compute, step_time.tensor, step_time.data, step_time.transfer]
    parts += [step_time.bubble, step_time.offload, step_time.update, step_time.overhead]
    assert min(parts) >= 0
    assert step_time.total == pytest.approx(sum(parts))
    assert step_time.communication == step_time.tensor + step_time.data + step_time.transfer


@pytest.mark.parametrize("name", ["data_parallel", "tensor", "pipeline", "hybrid"])
def test_on_one_rank_all_synchronous_strategies_are_computation_and_update(
    name: str, plain: Workload, machine: Machine
) -> None:
    step_time = step(name, plain, machine, ranks=1, micro_batches=3)
    assert step_time.compute == pytest.approx(3 * 10 * LAYER)
    assert step_time.update == pytest.approx(1e8 * UPDATE_BYTES / 1e12)
    assert step_time.communication == step_time.bubble == step_time.offload == 0


@pytest.mark.parametrize("name", ["data_parallel", "zero", "tensor", "pipeline"])
def test_a_hybrid_with_one_kind_of_parallelism_is_that_kind(name: str, plain: Workload, machine: Machine) -> None:
    alone = strategy_named(name).step(plain, PLANS[name], machine)
    assert strategy_named("hybrid").step(plain, PLANS[name], machine) == alone


def test_gradients_hide_behind_the_backward_pass_but_for_the_last_bucket(plain: Workload, machine: Machine) -> None:
    step_time = step("data_parallel", plain, machine, ranks=4, data=4, bucket_bytes=5e7)
    bucket = 6 * 1e-5 + 1.5 * 5e7 / 1e11  # four of them take 3.2 ms; half of the backward pass is 34 ms
    assert step_time.data == pytest.approx(bucket)


def test_what_the_backward_pass_cannot_hide_is_exposed(plain: Workload, machine: Machine) -> None:
    small = replace(plain, layer_flops=1.0, layer_sharded_bytes=1.0)
    hidden = 0.5 * stage_time(small, Plan(ranks=4, data=4), machine).backward * 3 / 4
    step_time = step("data_parallel", small, machine, ranks=4, data=4, bucket_bytes=5e7)
    assert step_time.data == pytest.approx(4 * (6 * 1e-5 + 1.5 * 5e7 / 1e11) - hidden)


def test_one_bucket_hides_nothing() -> None:
    assert exposed(1, 0.2, 100.0) == 0.2
    assert exposed(4, 0.2, 0.4) == pytest.approx(0.8 - 0.3)


def test_zero_moves_as_much_as_data_parallelism_until_stage_three() -> None:
    assert [moved_bytes(100, stage) for stage in (0, 1, 2, 3)] == [400, 400, 400, 600]


def test_zero_one_scatters_gradients_and_gathers_weights(plain: Workload, machine: Machine) -> None:
    step_time = step("zero", plain, machine, ranks=4, data=4, zero_stage=1, bucket_bytes=2e8)
    assert step_time.data == pytest.approx(2 * (3 * 1e-5 + 0.75 * 2e8 / 1e11))
    assert step_time.update == pytest.approx(1e8 / 4 * UPDATE_BYTES / 1e12)


def test_zero_three_waits_for_the_first_layer_of_each_pass(plain: Workload, machine: Machine) -> None:
    step_time = step("zero", plain, machine, ranks=4, data=4, zero_stage=3, micro_batches=2)
    layer = 3 * 1e-5 + 0.75 * 2e7 / 1e11  # 0.18 ms, hidden behind 10 ms of computation
    assert step_time.data == pytest.approx(2 * 3 * layer)


def test_tensor_ranks_split_the_work_and_reduce_four_times_a_layer(plain: Workload, machine: Machine) -> None:
    step_time = step("tensor", plain, machine, ranks=4, tensor=4, micro_batch=2)
    assert step_time.compute == pytest.approx(10 * 2 * LAYER / 4)
    tree = 4 * 1e-5 + 2 * 2e6 / 1e11
    ring = 6 * 1e-5 + 1.5 * 2e6 / 1e11
    assert step_time.tensor == pytest.approx(10 * 4 * min(tree, ring))


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_the_bubble_is_p_minus_one_of_m_plus_p_minus_one(schedule: Any, plain: Workload, machine: Machine) -> None:
    plan = Plan(ranks=5, pipeline=5, micro_batches=8, schedule=schedule)
    step_time = strategy_named("pipeline").step(plain, plan, machine)
    assert step_time.bubble == pytest.approx(4 * 2 * LAYER)
    assert step_time.bubble / (step_time.bubble + step_time.compute) == pytest.approx(4 / 12) == bubble_ratio(plan)
    assert step_time.transfer == pytest.approx(2 * 12 * (1e-5 + 1e6 / 1e11))


def test_interleaving_divides_the_bubble(plain: Workload, machine: Machine) -> None:
    whole = step("pipeline", plain, machine, ranks=5, pipeline=5, micro_batches=10)
    halved = step(
        "pipeline", plain, machine, ranks=5, pipeline=5, micro_batches=10, interleave=2, schedule="interleaved"
    )
    assert halved.bubble == pytest.approx(whole.bubble / 2)
    assert halved.transfer > whole.transfer


def test_the_longest_stage_counts_where_layers_do_not_divide(plain: Workload, machine: Machine) -> None:
    assert step("pipeline", plain, machine, ranks=4, pipeline=4).compute == pytest.approx(3 * LAYER)


def test_workers_share_their_node_and_the_servers(plain: Workload, machine: Machine) -> None:
    plan = Plan(ranks=16, data=16, servers=1)
    assert exchange_seconds(2e8, plan, machine) == pytest.approx(2 * (2e-5 + 2e8 * 16 / 5e10))
    assert exchange_seconds(2e8, replace(plan, servers=4), machine) == pytest.approx(2 * (2e-5 + 2e8 * 8 / 5e10))


def test_asynchronous_workers_hide_pushing_but_are_stale(plain: Workload, machine: Machine) -> None:
    waiting, running = Plan(ranks=16, data=16, servers=8), Plan(ranks=16, data=16, servers=8, asynchronous=True)
    steps = [strategy_named("parameter_server").step(plain, plan, machine) for plan in (waiting, running)]
    assert steps[1].data == pytest.approx(steps[0].data / 2)  # 103 ms of computation hide 32 ms, the pull never
    assert (staleness(waiting), staleness(running)) == (0, 15)
    assert progress_ratio(waiting, loss_a_stale_update=0.1) == 1
    assert progress_ratio(running, loss_a_stale_update=0.1) == pytest.approx(1 / 2.5)


def test_an_offloaded_optimizer_by_hand(plain: Workload, machine: Machine) -> None:
    step_time = step("offload", plain, machine, ranks=4, data=4, zero_stage=2, offload="optimizer")
    weights = 1e8 / 4
    copy = 1e-5 + 2 * weights / 2e10  # 2.5 ms, which the backward pass hides on the way out
    assert step_time.offload == pytest.approx(copy + UPDATE_BYTES * weights / 2e10)
    assert step_time.update == 0


def test_swapping_costs_nothing_while_all_fits(plain: Workload, machine: Machine) -> None:
    plan = Plan(ranks=1, offload="activations")
    assert swapped_ratio(plain, plan, machine) == 0
    assert strategy_named("offload").step(plain, plan, machine).offload == 0


def test_swapped_activations_wait_for_the_link(plain: Workload, machine: Machine) -> None:
    tight = replace(machine, device=replace(machine.device, memory_bytes=1e8 * 16 / 0.92))  # weights alone fit
    step_time = step("offload", plain, tight, ranks=1, offload="activations")
    copy, forward = 1e-5 + 1e8 / 2e10, LAYER / 3  # 5.01 ms, hidden backward (6.9 ms), not forward (3.4 ms)
    assert step_time.offload == pytest.approx(10 * (copy - forward) + 2 * forward)


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("data_parallel", {"tensor": 2}, "tensor is 2 with strategy data_parallel, expected 1"),
        ("data_parallel", {"data": 2, "zero_stage": 1}, "zero_stage is 1 with strategy data_parallel, expected 0"),
        ("zero", {"data": 2}, "zero_stage is 0 with strategy zero, expected 1 to 3"),
        ("zero", {"data": 2, "zero_stage": 1, "offload": "optimizer"}, "offload is optimizer with strategy zero"),
        ("tensor", {"data": 2}, "data is 2 with strategy tensor"),
        ("pipeline", {"data": 2}, "data is 2 with strategy pipeline"),
        ("pipeline", {"pipeline": 2, "offload": "activations"}, "offload is activations with strategy pipeline"),
        ("hybrid", {"data": 2, "offload": "activations"}, "offload is activations with strategy hybrid"),
        ("parameter_server", {"data": 2}, "servers is 0 with strategy parameter_server, expected at least 1"),
        ("offload", {"data": 2}, "offload is none with strategy offload, expected optimizer or activations"),
    ],
)
def test_plans_of_another_strategy_are_refused(
    name: str, fields: dict[str, Any], message: str, plain: Workload, machine: Machine
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        step(name, plain, machine, ranks=2, **fields)


def test_unknown_strategies_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="strategy is 'magic', expected one of data_parallel, zero, tensor"):
        strategy_named("magic")


@SHARED
@given(
    data=st.integers(1, 64),
    tensor=st.sampled_from([1, 2, 4, 8]),
    pipeline=st.integers(1, 10),
    micro_batches=st.integers(1, 64),
    zero_stage=st.integers(0, 3),
)
def test_more_micro_batches_never_make_a_step_shorter(
    data: int,
    tensor: int,
    pipeline: int,
    micro_batches: int,
    zero_stage: int,
    plain: Workload,
    device: Device,
) -> None:
    plan = Plan(
        ranks=data * tensor * pipeline,
        data=data,
        tensor=tensor,
        pipeline=pipeline,
        micro_batches=micro_batches,
        zero_stage=zero_stage,
    )
    machine = machine_of(device, ranks_a_node=8)
    few, more = (
        strategy_named("hybrid").step(plain, candidate, machine).total
        for candidate in (plan, replace(plan, micro_batches=micro_batches + 1))
    )
    assert 0 < few < more


@SHARED
@given(doublings=st.integers(0, 12), zero_stage=st.integers(0, 3))
def test_a_weakly_scaled_step_never_gets_shorter_with_more_nodes(
    doublings: int, zero_stage: int, plain: Workload, device: Device
) -> None:
    machine, ranks = machine_of(device, ranks_a_node=8), 8 * 2**doublings
    times = [
        step("hybrid", plain, machine, ranks=count, data=count, zero_stage=zero_stage) for count in (ranks, 2 * ranks)
    ]
    # Sharded updates get shorter; what is exchanged and computed must not. Relative 1e-9 is rounding.
    assert times[1].data >= times[0].data * (1 - 1e-9)
    assert times[1].compute == times[0].compute
