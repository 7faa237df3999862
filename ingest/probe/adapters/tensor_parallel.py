"""PyTorch's tensor parallelism: modules whose parameters are DTensors, as `parallelize_module` makes them.

A dimension of the device mesh is a group of its own, named after the dimension: `tp 0-1`, `dp 0,2`.
"""

from typing import Any

from crosswind.ingest.probe.adapters.kinds import is_kind
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.torch_calls import watch_calls_of


def matches(thing: Any) -> bool:
    """Return whether it is a module with a parameter that is a DTensor."""
    is_module = is_kind(thing, "torch.nn.Module")
    return is_module and any(is_kind(parameter, "torch.distributed.tensor.DTensor") for parameter in thing.parameters())


def watch(model: Any, timeline: Timeline) -> Any:
    """Report DTensor's collectives. Raises: InvalidInputError when it is on neither CPU nor GPU."""
    watch_calls_of(model, timeline)
    return model
