"""TensorFlow: a `tf.function` that does nothing but reduce over the workers of a strategy.

`summed = run.watch(summed)`, and each call within a step is an all-reduce: from the call until its result is there.
Collectives within a training function of `fit` are not seen. Source: tf.distribute.ReplicaContext.all_reduce.
"""

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from crosswind.ingest.probe.timeline import Timeline


def matches(thing: Any) -> bool:
    """Whether it is what tf.function makes."""
    classes = type(thing).__mro__
    return any(each.__name__ == "Function" and each.__module__.startswith("tensorflow.") for each in classes)


def watch(function: Any, timeline: Timeline) -> Callable[..., Any]:
    """The function, whose calls report; outside of steps it only passes on."""

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        arrival = timeline.arrive()
        value = function(*arguments, **named)
        if arrival is not None:
            _wait(value)
            told = (_bytes(value), "all_reduce", "strategy")
            timeline.collective_until(time.perf_counter_ns(), arrival, told, arrival.time)
        return value

    return call


def _wait(value: Any) -> None:
    """Until the result is there; on the CPU calls return when it is."""
    if hasattr(value, "numpy"):
        value.numpy()


def _bytes(value: Any) -> int | None:
    """Of the one tensor that is reduced; None of several."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    size = getattr(dtype, "size", None)
    elements = shape.num_elements() if shape is not None and hasattr(shape, "num_elements") else None
    return size * elements if size and elements else None
