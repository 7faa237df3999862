"""Collectives and transfers launched on process groups from Python."""

import time
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Final
from weakref import WeakKeyDictionary

from crosswind.ingest.probe.torch_calls.calls import Call, Calls, bytes_of, tensors_in
from crosswind.ingest.probe.torch_calls.groups import ANYBODY
from crosswind.ingest.probe.torch_calls.patches import Patches
from crosswind.ingest.probe.watch import seen_end

TRANSFER: Final = "transfer"
REDUCTIONS: Final = ("all_reduce", "reduce_scatter")  # by which gradients meet

# Method of ProcessGroup: operation, and the place of the argument whose bytes are reported, the same on all ranks.
# Source: torch/csrc/distributed/c10d/init.cpp. PyTorch's version decides which of them exist.
METHODS: Final[Mapping[str, tuple[str, int | None]]] = {
    "allreduce": ("all_reduce", 0),
    "allreduce_coalesced": ("all_reduce", 0),
    "reduce": ("reduce", 0),
    "broadcast": ("broadcast", 0),
    "allgather": ("all_gather", 0),
    "allgather_coalesced": ("all_gather", 0),
    "_allgather_base": ("all_gather", 0),
    "all_gather_single": ("all_gather", 0),
    "allgather_into_tensor_coalesced": ("all_gather", 0),
    "all_gather_single_coalesced": ("all_gather", 0),
    "gather": ("gather", 1),  # own part
    "scatter": ("scatter", 0),  # own part
    "reduce_scatter": ("reduce_scatter", 1),
    "_reduce_scatter_base": ("reduce_scatter", 1),
    "reduce_scatter_single": ("reduce_scatter", 1),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter", 1),
    "reduce_scatter_single_coalesced": ("reduce_scatter", 1),
    "alltoall": ("all_to_all", 1),
    "alltoall_base": ("all_to_all", 1),
    "all_to_all_single": ("all_to_all", 1),
    "barrier": ("barrier", None),
    "monitored_barrier": ("barrier", None),
    "send": (TRANSFER, 0),  # one word for both sides: the group says who receives
    "recv": (TRANSFER, 0),
    "recv_anysource": (TRANSFER, 0),
}

Pending = MutableMapping[Any, Call]
Notice = Callable[[Callable[[], tuple[str, int]]], None]


def watching() -> Calls | None:
    """Return the present watch of process groups."""
    from torch.distributed import ProcessGroup  # noqa: PLC0415 - torch is the user's, and only where it is used

    calls: Calls | None = getattr(ProcessGroup.allreduce, "calls", None)
    return calls if calls and calls.is_on else None


def watch_process_groups(calls: Calls, patches: Patches) -> None:
    """Make the methods of ProcessGroup report arrivals, and Work.wait ends; their types stay the same."""
    from torch.distributed import ProcessGroup, Work  # noqa: PLC0415 - torch is the user's

    pending: Pending = WeakKeyDictionary()
    for name in METHODS:
        if name in vars(ProcessGroup):
            patches.set(ProcessGroup, name, _method(getattr(ProcessGroup, name), calls, pending))
    patches.set(Work, "wait", _wait(Work.wait, calls, pending))


def notice_calls(is_wanted: Callable[[], bool], notice: Notice) -> None:
    """Call `notice` before each reduction that Python launches, if wanted by then.

    It is given a function that returns operation and bytes, or raises whatever unusual arguments lead to.
    """
    from torch.distributed import ProcessGroup  # noqa: PLC0415 - torch is the user's

    for name, (operation, _) in METHODS.items():
        if name in vars(ProcessGroup) and operation in REDUCTIONS:
            setattr(ProcessGroup, name, _noticed(getattr(ProcessGroup, name), is_wanted, notice))


def _noticed(original: Any, is_wanted: Callable[[], bool], notice: Notice) -> Any:
    name = original.__name__
    operation, sized = METHODS[name]

    def method(group: Any, *arguments: Any, **named: Any) -> Any:
        if is_wanted():
            values = (*arguments, *named.values())
            notice(lambda: (operation, 0 if sized is None else bytes_of(tensors_in(values[sized]))))
        return original(group, *arguments, **named)

    method.__code__ = method.__code__.replace(co_name=name)  # as below
    method.__name__, method.__doc__ = name, original.__doc__
    return method


def _method(original: Any, calls: Calls, pending: Pending) -> Callable[..., Any]:
    name = original.__name__

    def method(group: Any, *arguments: Any, **named: Any) -> Any:
        call = _begin(calls, group, name, (*arguments, *named.values())) if calls.are_reported else None
        work = original(group, *arguments, **named)
        if call:
            _launched(calls, call, work, pending)
        return work

    # A subclass in Python that leaves this method to ProcessGroup would come back here from C++ for ever: pybind11
    # takes any function in Python for an override, unless it is called by a function of the method's own name.
    method.__code__ = method.__code__.replace(co_name=name)
    method.__name__, method.__doc__ = name, original.__doc__
    method.calls = calls  # type: ignore[attr-defined]
    return method


def _begin(calls: Calls, group: Any, method: str, arguments: tuple[Any, ...]) -> Call | None:
    return calls.guarded(lambda: _begun(calls, group, method, arguments))


def _begun(calls: Calls, group: Any, method: str, arguments: tuple[Any, ...]) -> Call | None:
    operation, sized = METHODS[method]
    tensors = () if sized is None else tensors_in(arguments[sized])
    arrival = calls.arrive_with(tensors)
    if arrival is None:
        return None
    is_synchronous = bool(arguments) and not getattr(arguments[-1], "asyncOp", True)
    since = arrival.time if is_synchronous else None
    return Call(arrival, bytes_of(tensors), operation, _name(calls, group, method, arguments), since)


def _launched(calls: Calls, call: Call, work: Any, pending: Pending) -> None:
    if work is None and call.arrival.came:
        if call.operation != TRANSFER:  # it is in the queue; a coalesced one is not yet
            calls.end_on_device(call, call.arrival.came)
    elif work is None:  # it is over already
        calls.report_end(call, time.perf_counter_ns(), call.arrival.time)
    else:  # other packages' process groups may return objects without weak references
        calls.guarded(lambda: pending.update({work: call}))


def _name(calls: Calls, group: Any, method: str, arguments: tuple[Any, ...]) -> str:
    if method == "send":
        return calls.groups.transfer(group, group.rank(), arguments[1])
    if method == "recv":
        return calls.groups.transfer(group, arguments[1], group.rank())
    if method == "recv_anysource":
        return calls.groups.transfer(group, ANYBODY, group.rank())
    return calls.groups.name(group)


def _wait(original: Any, calls: Calls, pending: Pending) -> Callable[..., Any]:
    def wait(work: Any, *arguments: Any, **named: Any) -> Any:
        call = pending.pop(work, None) if pending else None
        if call is None:
            return original(work, *arguments, **named)
        if call.arrival.came:
            return calls.wait_on_device(call, lambda: original(work, *arguments, **named))
        since, open_at = _waited_since(calls, call, work)
        result = original(work, *arguments, **named)
        calls.report_end(call, seen_end(time.perf_counter_ns(), open_at=open_at, since=since), since)
        return result

    wait.__doc__ = original.__doc__
    return wait


def _waited_since(calls: Calls, call: Call, work: Any) -> tuple[int, int]:
    """Return since when the loop stands still for the work, and when that was last known to be under way."""
    if call.blocked_since is not None:
        return call.blocked_since, call.blocked_since
    was_done, now = calls.guarded(work.is_completed), time.perf_counter_ns()
    return now, call.arrival.time if was_done else now
