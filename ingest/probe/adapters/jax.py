"""JAX: a function made by `jax.jit`; calls within a step are waited for, so that it ends when its work does.

Every process launches the same programs in the same order, so a call is recorded as collective `program`: when this
process came to it, and when its results were there. Collectives within it are not seen, nor is computing distinguished
from waiting for other processes: all of it is `compute`. A process that is late in Python shows by its arrival; one
whose device is slow does not. Waiting costs the overlap of Python with the device. Source: jax.block_until_ready.
"""

import time
from typing import Any

from crosswind.ingest.probe.adapters.kinds import is_kind
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.watch import Watch
from crosswind.ingest.probe.watched_function import WatchedFunction


def matches(thing: Any) -> bool:
    """Return whether it is a function that jax.jit made."""
    return is_kind(thing, "jaxlib.PjitFunction")


def watch(function: Any, timeline: Timeline) -> WatchedFunction:
    """Return the function with calls that report; outside of steps it only passes on."""
    from jax import block_until_ready  # noqa: PLC0415 - it is the user's

    description, watch = (None, "program", str(getattr(function, "__name__", "jit"))), Watch(timeline)

    def call(*arguments: Any, **named: Any) -> Any:
        arrival = watch.arrive()
        results = function(*arguments, **named)
        if arrival is not None:
            watch.guarded(lambda: block_until_ready(results))
            watch.ended(arrival, lambda: description, time.perf_counter_ns(), None)
        return results

    return WatchedFunction(function, call)
