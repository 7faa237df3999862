"""PyTorch's fully sharded data parallelism, `fully_shard` (FSDP2) and FullyShardedDataParallel (FSDP1).

Both launch their collectives from Python. An all-gather that runs ahead of its layer lasts from its launch until the
layer has it; the loop stood still for it only while it waited. On the CPU, reduce-scatters are waited for at once.
Source: torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py.
"""

from typing import Any, Final

from crosswind.ingest.probe.adapters.kinds import is_kind
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.torch_calls import watch_calls_of

CLASSES: Final = ("torch.distributed.fsdp.FSDPModule", "torch.distributed.fsdp.FullyShardedDataParallel")


def matches(thing: Any) -> bool:
    """Return whether it is a fully sharded model."""
    return is_kind(thing, *CLASSES)


def watch(model: Any, timeline: Timeline) -> Any:
    """Report all-gathers and reduce-scatters. Raises: InvalidInputError when it is on neither CPU nor GPU."""
    watch_calls_of(model, timeline)
    return model
