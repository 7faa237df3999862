"""PyTorch's fully sharded data parallelism, `fully_shard` (FSDP2) and FullyShardedDataParallel (FSDP1).

Both ask for their collectives from Python. An all-gather that runs ahead of its layer is told from its launch until
the layer has it; the loop stood still for it only while it waited. On the CPU, reduce-scatters are waited for at once.
Source: torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py.
"""

from typing import Any, Final

from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.torch_calls import watch_calls_of

CLASSES: Final = {"FSDPModule", "FullyShardedDataParallel"}


def matches(thing: Any) -> bool:
    """Whether it is a fully sharded model."""
    classes = type(thing).__mro__
    return any(each.__name__ in CLASSES and each.__module__.startswith("torch.distributed.fsdp") for each in classes)


def watch(model: Any, timeline: Timeline) -> Any:
    """Has all-gathers and reduce-scatters reported. Raises: InvalidInputError when the model is not on the CPU."""
    watch_calls_of(model, timeline)
    return model
