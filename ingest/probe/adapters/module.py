"""Any other PyTorch module: its device times the steps, and ranks report the collectives that Python launches.

So are modules of tensor parallelism, whose parameters are DTensors, as `parallelize_module` makes them: a dimension of
the device mesh is a group of its own, named after the dimension: `tp 0-1`, `dp 0,2`.
"""

from typing import Any

from crosswind.ingest.probe.adapters.kinds import is_kind
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.torch_calls import watch_training


def matches(thing: Any) -> bool:
    """Return whether it is a module."""
    return is_kind(thing, "torch.nn.Module")


def watch(model: Any, timeline: Timeline) -> Any:
    """Report as above. Raises: InvalidInputError when it is on neither CPU nor GPU."""
    watch_training(model.parameters(), timeline)
    return model
