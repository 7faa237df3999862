"""TensorFlow: a `tf.function` that only reduces over the workers of a strategy.

`summed = run.watch(summed)`, and each call within a step is an all-reduce: from the call until its result is there.
Collectives within a training function of `fit` are not seen. Source: tf.distribute.ReplicaContext.all_reduce.
"""

import time
from typing import Any

from crosswind.ingest.probe.adapters.kinds import is_kind
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.watch import Watch
from crosswind.ingest.probe.watched_function import WatchedFunction


def matches(thing: Any) -> bool:
    """Return whether it is made by tf.function."""
    return is_kind(thing, "tensorflow.Function")


def watch(function: Any, timeline: Timeline) -> WatchedFunction:
    """Return the function with calls that report; outside of steps it only passes on."""
    watch = Watch(timeline)

    def call(*arguments: Any, **named: Any) -> Any:
        arrival = watch.arrive()
        value = function(*arguments, **named)
        if arrival is not None:
            watch.guarded(lambda: _wait(value))
            end = time.perf_counter_ns()
            watch.ended(arrival, lambda: (_bytes(value), "all_reduce", "strategy"), end, arrival.time)
        return value

    return WatchedFunction(function, call)


def _wait(value: Any) -> None:
    """Wait until the result is there; on the CPU it is there when calls return."""
    if hasattr(value, "numpy"):
        value.numpy()


def _bytes(value: Any) -> int | None:
    """Return the bytes of the one tensor that is reduced; None of several."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    size = getattr(dtype, "size", None)
    elements = shape.num_elements() if shape is not None and hasattr(shape, "num_elements") else None
    return size * elements if size and elements else None
