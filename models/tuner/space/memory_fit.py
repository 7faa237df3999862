"""The memory of a device that a transformer needs under a configuration, as names for expressions.

A study file that describes its transformer may write `fits_memory` or `memory_needed_bytes < 0.8 * 80e9` among its
constraints. Parameters and facts with the names of PLAN_NAMES say how the model is spread.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from crosswind.data.devices.device import Device
from crosswind.data.devices.sheets import device_named
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Parameter
from crosswind.models.analytic.networks.transformer import Transformer
from crosswind.models.analytic.step.memory import fits, memory_use
from crosswind.models.analytic.step.plan import Plan
from crosswind.models.tuner.space.formula import Application, Formula, Missing, Variable
from crosswind.models.tuner.space.operations import Operation

SIZES = ("layers", "hidden", "heads", "sequence", "vocabulary")
DEVICE = ("device", "device_memory_bytes")
FITS, NEEDED = "fits_memory", "memory_needed_bytes"
CACHE_MAX = 100_000
# A plan's fields, and the names that people give to such parameters.
PLAN_NAMES: Mapping[str, tuple[str, ...]] = {
    "data": ("data", "dp", "data_parallel"),
    "tensor": ("tensor", "tp", "tensor_parallel"),
    "pipeline": ("pipeline", "pp", "pipeline_parallel"),
    "ranks": ("ranks", "world_size", "gpus"),
    "micro_batch": ("micro_batch", "micro_batch_size"),
    "micro_batches": ("micro_batches", "accumulation"),
    "zero_stage": ("zero_stage",),
    "recompute": ("recompute", "activation_checkpointing"),
    "sequence_parallel": ("sequence_parallel",),
    "offload": ("offload",),
    "schedule": ("schedule",),
    "interleave": ("interleave",),
}
COUNTS = ("data", "tensor", "pipeline", "ranks", "micro_batch", "micro_batches", "zero_stage", "interleave")
OFFLOADED: Mapping[Parameter, str] = {
    "cpu": "optimizer",
    False: "none",
    True: "optimizer",
}  # other words for a plan's offload


def memory_names(transformer: Mapping[str, Parameter], names: Collection[str]) -> Mapping[str, Formula]:
    """Return `fits_memory` and `memory_needed_bytes` as formulas over those of the names that are a plan's.

    Without a transformer there are none. Raises: InvalidInputError that names the transformer's field.
    """
    if not transformer:
        return {}
    workload, device = _transformer(transformer).workload(), _device(transformer)
    pairs = [(field, name) for field, others in PLAN_NAMES.items() for name in others if name in names]
    fields = tuple(field for field, _ in pairs)
    if len(set(fields)) < len(fields):
        twice = next(field for field in fields if fields.count(field) > 1)
        raise InvalidInputError(f"{PLAN_NAMES[twice]} mean the same, expected one of them among the parameters")
    parts = tuple(Variable(name) for _, name in pairs)

    def plan(values: Sequence[Parameter | Missing]) -> Plan:
        settings = {field: value for field, value in zip(fields, values, strict=True) if not isinstance(value, Missing)}
        return _plan(settings)

    @lru_cache(maxsize=CACHE_MAX)
    def needed(*values: Parameter | Missing) -> float:
        return memory_use(workload, plan(values)).total

    @lru_cache(maxsize=CACHE_MAX)
    def has_room(*values: Parameter | Missing) -> bool:
        return fits(workload, plan(values), device)

    return {
        NEEDED: Application(Operation(NEEDED, needed, is_numeric=False, takes_missing=True), parts),
        FITS: Application(Operation(FITS, has_room, is_numeric=False, takes_missing=True), parts),
    }


def _plan(values: Mapping[str, Parameter]) -> Plan:
    """Return the plan; without a data-parallel degree, the other degrees leave it of the ranks."""
    settings = {"schedule": "1f1b", "offload": "none", **values}
    odd = [field for field in COUNTS if not isinstance(settings.get(field, 1), int)]
    if odd:
        raise InvalidInputError(f"{odd[0]} is {settings[odd[0]]!r}, expected a whole number")
    others = int(settings.get("tensor", 1)) * int(settings.get("pipeline", 1))
    settings.setdefault("ranks", int(settings.get("data", 1)) * others)
    settings.setdefault("data", int(settings["ranks"]) // others)
    settings["offload"] = OFFLOADED.get(settings["offload"], settings["offload"])
    return Plan(**settings)  # type: ignore[arg-type]  # it checks its fields


def _transformer(transformer: Mapping[str, Parameter]) -> Transformer:
    unknown = sorted(transformer.keys() - {*SIZES, *DEVICE})
    if unknown:
        raise InvalidInputError(f"transformer has no field {unknown[0]!r}, expected {', '.join((*SIZES, *DEVICE))}")
    sizes: dict[str, int] = {}
    for name in SIZES:
        value = transformer.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 2**40:
            raise InvalidInputError(f"transformer: {name} is {value!r}, expected a whole number from 1")
        sizes[name] = value
    return Transformer(**sizes)


def _device(transformer: Mapping[str, Parameter]) -> Device:
    """Return the named device, or one with the given memory."""
    memory_bytes, name = transformer.get("device_memory_bytes"), transformer.get("device")
    if memory_bytes is None:
        device = device_named(str(name)) if name is not None else None
        if device is None or not device.memory_bytes > 0:
            expected = "expected a known device such as 'H100', or device_memory_bytes"
            raise InvalidInputError(f"transformer: device is {name!r}, {expected}")
        return device
    if isinstance(memory_bytes, bool) or not isinstance(memory_bytes, int | float) or not 0 < memory_bytes < 1e18:
        raise InvalidInputError(f"transformer: device_memory_bytes is {memory_bytes!r}, expected a positive number")
    return Device("given", math.nan, math.nan, math.nan, float(memory_bytes), math.nan, 0)
