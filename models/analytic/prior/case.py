"""Rows of a table as cases for the formulas."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, TypeAlias

import pandas as pd

from crosswind.data.devices.device import Device
from crosswind.data.devices.sheets import device_named
from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.checks import require_count, require_positive
from crosswind.models.analytic.machine.constants import Constants
from crosswind.models.analytic.machine.machine import machine_of
from crosswind.models.analytic.networks.transformer import Transformer
from crosswind.models.analytic.networks.workload import Workload
from crosswind.models.analytic.step.plan import Plan
from crosswind.models.analytic.strategies import strategy_named

Described: TypeAlias = Mapping[str, Any]

UNKNOWN_DEVICE = Device("unknown", 1e14, 5e13, 1e12, 4e10, 300.0, 2020)  # a mid-range accelerator
VOCABULARY = 51200  # GPT-2's 50257, padded for tensor parallelism as Megatron-LM does
SEQUENCE = 1024
HEAD_SIZE = 64  # where heads are not given
LAYERS = 50  # of a network of which only totals are known
BYTES_A_FLOP = 1 / 60  # activations kept, of such a network: ResNet-50, 12 GFLOP forward and backward, keeps 0.2 GB


class Case(Protocol):
    """One configuration, and the formula for the columns it has."""

    def seconds(self, constants: Constants) -> float:
        """Seconds of a step."""
        ...


@dataclass(frozen=True)
class SpreadNetwork:
    """A network of known sizes, spread by a plan."""

    workload: Workload
    plan: Plan
    device: Device
    inside_bytes_per_second: float | None = None
    between_bytes_per_second: float | None = None

    def seconds(self, constants: Constants) -> float:
        """Seconds of a step by the formulas of the plan's strategy."""
        machine = machine_of(
            self.device,
            ranks_a_node=min(self.plan.ranks_a_node, self.plan.ranks),
            inside_bytes_per_second=self.inside_bytes_per_second,
            between_bytes_per_second=self.between_bytes_per_second,
            constants=constants,
        )
        return strategy_named(self.plan.strategy).step(self.workload, self.plan, machine).total


@dataclass(frozen=True)
class UnknownProgram:
    """Anything that shares a batch among ranks."""

    ranks: float
    batch: float

    def __post_init__(self) -> None:
        require_positive(ranks=self.ranks, batch=self.batch)

    def seconds(self, constants: Constants) -> float:
        """unit (batch / ranks + serial + tree log2 ranks): Amdahl's law with a reduction."""
        shared = self.batch / self.ranks
        lost = constants.serial_ratio + constants.tree_ratio * math.log2(max(self.ranks, 1.0))
        return constants.unit_seconds * (shared + lost)


def case_of(described: Described) -> Case:
    """Return the case of a row, with the most exact formula for its columns. Raises: InvalidInputError.

    `hidden` and `layers` make a transformer, `parameters` and `flops_per_sample` any network, else scale alone counts.
    """
    columns = {name: value for name, value in described.items() if not _is_missing(value)}
    workload = _workload(columns)
    if workload is None:
        return UnknownProgram(_number(columns, "ranks", 1.0), _number(columns, "global_batch", 1.0))
    return SpreadNetwork(
        workload,
        plan_of(columns),
        _device(str(columns.get("accelerator", ""))),
        _optional(columns, "inside_bytes_per_second"),
        _optional(columns, "between_bytes_per_second"),
    )


def _device(name: str) -> Device:
    """Return the device of a name, with the unknown device's figures where its maker publishes none."""
    device = device_named(name) or UNKNOWN_DEVICE
    unpublished = [field.name for field in fields(device) if _is_missing(getattr(device, field.name))]
    return replace(device, **{name: getattr(UNKNOWN_DEVICE, name) for name in unpublished})


def plan_of(columns: Described) -> Plan:
    """Return the plan of a row; missing degrees are 1, and a missing `data_parallel` the rest of the ranks.

    Raises: InvalidInputError.
    """
    tensor, pipeline = _whole(columns, "tensor_parallel", 1), _whole(columns, "pipeline_parallel", 1)
    require_count(tensor_parallel=tensor, pipeline_parallel=pipeline)
    data = _whole(columns, "data_parallel", max(1, _whole(columns, "ranks", 1) // (tensor * pipeline)))
    ranks = _whole(columns, "ranks", data * tensor * pipeline)
    interleave = _whole(columns, "interleave", 1)
    micro_batch, micro_batches = _batches(columns, data)
    return Plan(
        ranks=ranks,
        strategy=str(columns.get("strategy", "hybrid")),
        data=data,
        tensor=tensor,
        pipeline=pipeline,
        micro_batch=micro_batch,
        micro_batches=micro_batches,
        ranks_a_node=_whole(columns, "ranks_per_node", 8),
        zero_stage=_whole(columns, "zero_stage", 0),
        schedule=columns.get("schedule", "interleaved" if interleave > 1 else "1f1b"),
        interleave=interleave,
        recompute=_is_true(columns, "recompute"),
        sequence_parallel=_is_true(columns, "sequence_parallel"),
        offload=columns.get("offload", "none"),
        servers=_whole(columns, "servers", 0),
        asynchronous=_is_true(columns, "asynchronous"),
    )


def _batches(columns: Described, data: int) -> tuple[int, int]:
    """Samples of a micro-batch and micro-batches of a rank, from two of global batch, micro-batch and their number.

    Fractions are rounded up: the fullest rank counts.
    """
    if "global_batch" not in columns:
        return _whole(columns, "micro_batch", 1), _whole(columns, "micro_batches", 1)
    rank_batch = _shared(_whole(columns, "global_batch", 1), "data_parallel", data)
    if "micro_batches" in columns and "micro_batch" not in columns:
        count = _whole(columns, "micro_batches", 1)
        return _shared(rank_batch, "micro_batches", count), count
    micro_batch = _whole(columns, "micro_batch", rank_batch)
    return micro_batch, _shared(rank_batch, "micro_batch", micro_batch)


def _shared(amount: int, name: str, among: int) -> int:
    require_count(**{name: among})
    return math.ceil(amount / among)


def _workload(columns: Described) -> Workload | None:
    for needed, make in WORKLOADS:
        if all(name in columns for name in needed):
            return make(columns)
    return None


def _transformer(columns: Described) -> Workload:
    hidden = _whole(columns, "hidden", 1)
    transformer = Transformer(
        layers=_whole(columns, "layers", 1),
        hidden=hidden,
        heads=_whole(columns, "heads", max(1, hidden // HEAD_SIZE)),
        sequence=_whole(columns, "sequence", SEQUENCE),
        vocabulary=_whole(columns, "vocabulary", VOCABULARY),
    )
    return transformer.workload(recompute=_is_true(columns, "recompute"))


def _of_totals(columns: Described) -> Workload:
    layers = _whole(columns, "layers", LAYERS)
    flops = _number(columns, "flops_per_sample", 1.0)
    stored = _number(columns, "activation_bytes_per_sample", flops * BYTES_A_FLOP)
    return Workload(
        layers=layers,
        layer_flops=flops / layers,
        layer_parameters=_number(columns, "parameters", 1.0) / layers,
        layer_sharded_bytes=stored / layers,
        boundary_bytes=stored / layers,
        kernels=3,
    )


WORKLOADS: tuple[tuple[tuple[str, ...], Callable[[Described], Workload]], ...] = (
    (("hidden", "layers"), _transformer),
    (("parameters", "flops_per_sample"), _of_totals),
)


def _is_missing(value: object) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def _number(columns: Described, name: str, default: float) -> float:
    value = columns.get(name, default)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{name} is {value!r}, expected a number") from None


def _optional(columns: Described, name: str) -> float | None:
    return _number(columns, name, 0.0) if name in columns else None


def _whole(columns: Described, name: str, default: int) -> int:
    value = _number(columns, name, default)
    if not (math.isfinite(value) and value == int(value)):
        raise InvalidInputError(f"{name} is {value}, expected a whole number")
    return int(value)


def _is_true(columns: Described, name: str) -> bool:
    value = columns.get(name, False)
    if value in (0, 1):  # also True and False, of Python and NumPy
        return bool(value)
    raise InvalidInputError(f"{name} is {value!r}, expected true or false")
