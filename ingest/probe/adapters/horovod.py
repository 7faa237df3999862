"""Horovod with PyTorch: `run.watch(hvd)`, the module `horovod.torch`, or a DistributedOptimizer of it.

The functions of the module report until the run ends: allreduce, allgather, broadcast and so on when they return,
their `_async` forms when `synchronize` does. A DistributedOptimizer launches its all-reduces within the module
`horovod.torch.optimizer`, beyond reach; the wait for all of them, in its `synchronize`, is reported as one.
Written to the documented interface and tested against a stand-in of it alone.
Source: horovod.readthedocs.io/en/stable/api.html; horovod/torch/optimizer.py, horovod/common/process_sets.py.
"""

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial, wraps
from typing import Any, Final

from crosswind.ingest.probe.step import Arrival, What
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.torch_calls.calls import bytes_of
from crosswind.ingest.probe.torch_calls.groups import WORLD, listed
from crosswind.ingest.probe.torch_calls.patches import Patches
from crosswind.ingest.probe.watch import Describe, Watch, seen_end

MODULE: Final = "horovod.torch"
OPERATIONS: Final = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "broadcast": "broadcast",
    "alltoall": "all_to_all",
}
MOST_PENDING: Final = 10_000  # handles without a wait

Pending = dict[Any, tuple[Arrival, What]]  # by handle


def matches(thing: Any) -> bool:
    """Return whether it is the module, or an optimizer made by DistributedOptimizer."""
    is_module = thing is not None and thing is sys.modules.get(MODULE)
    return is_module or _optimizer(thing) is not None


def watch(thing: Any, timeline: Timeline) -> Any:
    """Return the same object, which reports until the run ends."""
    watch, patches = Watch(timeline), Patches()
    timeline.on_close(patches.undo)
    kind = _optimizer(thing)
    if kind is None:
        _watch_module(thing, watch, patches)
    else:
        patches.set(kind, "synchronize", _gradients(vars(kind)["synchronize"], watch))
    return thing


def _optimizer(thing: Any) -> type | None:
    """Return the class that DistributedOptimizer derived: it has the given optimizer's name, in Horovod's module."""
    classes = type(thing).__mro__
    return next((base for base in classes if f"{base.__module__}.".startswith(f"{MODULE}.") and _waits(base)), None)


def _waits(kind: type) -> bool:
    return "synchronize" in vars(kind)


def _watch_module(module: Any, watch: Watch, patches: Patches) -> None:
    own, pending = dict(vars(module)), Pending()
    for name, operation in OPERATIONS.items():
        what = partial(_described, operation)
        for spelled, launching in ((name, f"{name}_async"), (f"{name}_", f"{name}_async_")):
            if spelled in own:
                patches.set(module, spelled, watch.around(own[spelled], what))
            if launching in own:
                patches.set(module, launching, _launching(own[launching], what, watch, pending))
    patches.set(module, "synchronize", _waiting(own["synchronize"], own.get("poll", lambda _: True), watch, pending))


def _described(operation: str, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> What:
    tensor = arguments[0] if arguments else named["tensor"]
    return bytes_of([tensor]), operation, _group((*arguments, *named.values()))


def _group(arguments: Iterable[Any]) -> str:
    """Return the process set among the arguments; without one, or with the global one, it is everybody."""
    sets = [argument for argument in arguments if getattr(argument, "process_set_id", None)]
    return f"process_set {listed(sets[0].ranks)}" if sets else WORLD


def _launching(function: Callable[..., Any], what: Describe, watch: Watch, pending: Pending) -> Callable[..., Any]:
    """Return the wrapper of a function that returns a handle."""

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        arrival = watch.arrive()
        handle = function(*arguments, **named)
        if arrival is not None:
            watch.guarded(lambda: _keep(pending, handle, (arrival, what(arguments, named))))
        return handle

    return call


def _keep(pending: Pending, handle: Any, launched: tuple[Arrival, What]) -> None:
    pending[handle] = launched
    if len(pending) > MOST_PENDING:
        del pending[next(iter(pending))]


def _waiting(
    function: Callable[..., Any], poll: Callable[[Any], bool], watch: Watch, pending: Pending
) -> Callable[..., Any]:
    """Return the wrapper of the function that waits for a handle."""

    @wraps(function)
    def call(handle: Any, *arguments: Any, **named: Any) -> Any:
        launched = watch.guarded(lambda: pending.pop(handle, None))
        was_done = launched is not None and watch.guarded(lambda: poll(handle))
        since = time.perf_counter_ns()
        value = function(handle, *arguments, **named)
        if launched is not None:
            arrival, description = launched
            open_at = arrival.time if was_done else since
            watch.ended(
                arrival, lambda: description, seen_end(time.perf_counter_ns(), open_at=open_at, since=since), since
            )
        return value

    return call


def _gradients(function: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    """Return the wrapper of the method in which an optimizer waits for all of its gradients."""

    @wraps(function)
    def synchronize(optimizer: Any, *arguments: Any, **named: Any) -> Any:
        arrival = watch.arrive()
        were_done = arrival is not None and watch.guarded(lambda: _are_done(optimizer))
        value = function(optimizer, *arguments, **named)
        if arrival is not None:
            group = partial(_group, (getattr(optimizer, "process_set", None),))
            end = None if were_done else time.perf_counter_ns()
            watch.ended(arrival, lambda: (None, "all_reduce", group()), end, arrival.time)
        return value

    return synchronize


def _are_done(optimizer: Any) -> bool:
    """Return whether all gradients had been reduced before the wait, at an unknown time."""
    poll: Any = getattr(sys.modules.get(MODULE), "poll", None)
    handles = [handle for handle, _ in getattr(optimizer, "_handles", {}).values()]
    return bool(poll and handles) and all(isinstance(handle, int) and poll(handle) for handle in handles)
