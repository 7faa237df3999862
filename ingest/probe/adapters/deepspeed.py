"""DeepSpeed's engine, ZeRO stages 0 to 3: `deepspeed.comm` leads to torch.distributed.

Source: deepspeed/comm/torch.py.
"""

from typing import Any

from crosswind.ingest.probe.adapters.kinds import is_kind
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.torch_calls import watch_calls_of


def matches(thing: Any) -> bool:
    """Return whether it is the engine of `deepspeed.initialize`."""
    return is_kind(thing, "deepspeed.DeepSpeedEngine")


def watch(engine: Any, timeline: Timeline) -> Any:
    """Report the engine's collectives. Raises: InvalidInputError when it is on neither CPU nor GPU."""
    watch_calls_of(engine, timeline)
    return engine
