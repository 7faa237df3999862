"""Horovod with PyTorch: `run.watch(hvd)`, the module `horovod.torch`, or a DistributedOptimizer of it.

The functions of the module report until the run ends: allreduce, allgather, broadcast and their like when they return,
their `_async` forms when `synchronize` does. A DistributedOptimizer launches its all-reduces within the module
`horovod.torch.optimizer`, beyond reach; the wait for all of them, in its `synchronize`, is reported as one.
Written to the documented interface and tested against a stand-in of it alone.
Source: horovod.readthedocs.io/en/stable/api.html.
"""

import sys
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from crosswind.ingest.probe.step import Arrival
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.torch_calls.patches import Patches

MODULE = "horovod.torch"
OPERATIONS = {"allreduce": "all_reduce", "allgather": "all_gather", "broadcast": "broadcast", "alltoall": "all_to_all"}


def matches(thing: Any) -> bool:
    """Whether it is the module, or an optimizer that can synchronize as Horovod's does."""
    is_module = thing is not None and thing is sys.modules.get(MODULE)
    return is_module or _is_optimizer(thing)


def watch(thing: Any, timeline: Timeline) -> Any:
    """The same, which reports until the run ends."""
    patches = Patches()
    timeline.on_close(patches.undo)
    if _is_optimizer(thing):
        kind = type(thing)
        patches.set(kind, "synchronize", _blocking(kind.synchronize, "all_reduce", timeline))
        return thing
    pending: dict[Any, tuple[Arrival, tuple[int | None, str, str]]] = {}
    for name, operation in OPERATIONS.items():
        for spelled in (name, f"{name}_"):
            asked = f"{spelled.rstrip('_')}_async{'_' if spelled.endswith('_') else ''}"
            if spelled in vars(thing):
                patches.set(thing, spelled, _blocking(vars(thing)[spelled], operation, timeline))
            if asked in vars(thing):
                patches.set(thing, asked, _asked(vars(thing)[asked], operation, timeline, pending))
    patches.set(thing, "synchronize", _waited(thing.synchronize, timeline, pending))
    return thing


def _is_optimizer(thing: Any) -> bool:
    """DistributedOptimizer derives a class of that name from the optimizer that it is given."""
    return type(thing).__name__ == "_DistributedOptimizer" or (
        hasattr(type(thing), "synchronize") and hasattr(type(thing), "skip_synchronize")
    )


def _blocking(function: Callable[..., Any], operation: str, timeline: Timeline) -> Callable[..., Any]:
    """A function that is done when it returns."""

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        arrival = timeline.arrive()
        value = function(*arguments, **named)
        if arrival is not None:
            told = (_size(arguments), operation, "world")
            timeline.collective_until(time.perf_counter_ns(), arrival, told, arrival.time)
        return value

    return call


def _asked(
    function: Callable[..., Any], operation: str, timeline: Timeline, pending: dict[Any, Any]
) -> Callable[..., Any]:
    """A function that gives a handle."""

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        arrival = timeline.arrive()
        handle = function(*arguments, **named)
        if arrival is not None:
            pending[handle] = (arrival, (_size(arguments), operation, "world"))
        return handle

    return call


def _waited(function: Callable[..., Any], timeline: Timeline, pending: dict[Any, Any]) -> Callable[..., Any]:
    """The function that waits for a handle."""

    @wraps(function)
    def call(handle: Any, *arguments: Any, **named: Any) -> Any:
        since = time.perf_counter_ns()
        value = function(handle, *arguments, **named)
        arrival, told = pending.pop(handle, (None, None))
        if arrival is not None:
            timeline.collective_until(time.perf_counter_ns(), arrival, told, since)
        return value

    return call


def _size(arguments: tuple[Any, ...]) -> int | None:
    """Bytes of the tensor that is passed first."""
    size = getattr(arguments[0], "nbytes", None) if arguments else None
    return size if isinstance(size, int) else None
