"""JAX: a function made by `jax.jit`; calls within a step are waited for, so that it ends when its work does.

Every process launches the same programs in the same order, so a call is recorded as collective `program`: when this
process came to it, and when its results were there. Collectives within it are not seen, nor is computing told from
waiting for other processes: all of it is `compute`. A process that is late in Python is told by its arrival; one whose
device is slow is not. Waiting costs the overlap of Python with the device. Source: jax.block_until_ready.
"""

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from crosswind.ingest.probe.timeline import Timeline


def matches(thing: Any) -> bool:
    """Whether it is a function that jax.jit made."""
    return (type(thing).__name__, type(thing).__module__.partition(".")[0]) == ("PjitFunction", "jaxlib")


def watch(function: Any, timeline: Timeline) -> Callable[..., Any]:
    """The function, whose calls report; outside of steps it only passes on."""
    from jax import block_until_ready  # noqa: PLC0415 - it is the user's

    name = getattr(function, "__name__", "jit")

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        arrival = timeline.arrive()
        results = function(*arguments, **named)
        if arrival is not None:
            block_until_ready(results)
            timeline.collective_until(time.perf_counter_ns(), arrival, (None, "program", name))
        return results

    return call
