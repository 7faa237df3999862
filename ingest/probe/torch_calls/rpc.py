"""Remote procedure calls of torch.distributed.rpc, and fetching what an RRef refers to."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

from crosswind.ingest.probe.torch_calls.calls import Call, Calls, bytes_of
from crosswind.ingest.probe.torch_calls.patches import Patches
from crosswind.ingest.probe.watch import seen_end

OPERATION: Final = "rpc"


def watch_rpc(calls: Calls, patches: Patches) -> None:
    """Make calls report their start and their answer, with the bytes of all tensors both ways.

    The callers of one worker are a group, `rpc server`: its n-th call of a step is compared over its callers.
    """
    import torch  # noqa: PLC0415 - torch is the user's
    from torch.distributed.rpc import PyRRef, api  # noqa: PLC0415

    pending: WeakKeyDictionary[Any, Call] = WeakKeyDictionary()
    patches.set(api, "_invoke_rpc", _invoke(api._invoke_rpc, calls, pending))  # rpc_sync and rpc_async lead to it
    patches.set(torch._C.Future, "wait", _wait(torch._C.Future.wait, calls, pending))
    patches.set(PyRRef, "to_here", _to_here(PyRRef.to_here, calls))


def _invoke(original: Any, calls: Calls, pending: WeakKeyDictionary[Any, Call]) -> Callable[..., Any]:
    def invoke(to: Any, *arguments: Any, **named: Any) -> Any:
        call = _begun(calls, lambda: _worker(to), (arguments, named))
        future = original(to, *arguments, **named)
        if call:
            calls.guarded(lambda: pending.update({future: call}))
        return future

    return invoke


def _wait(original: Any, calls: Calls, pending: WeakKeyDictionary[Any, Call]) -> Callable[..., Any]:
    def wait(future: Any, *arguments: Any, **named: Any) -> Any:
        call = pending.pop(future, None)
        if call is None:
            return original(future, *arguments, **named)
        was_done, since = calls.guarded(future.done), time.perf_counter_ns()
        answer = original(future, *arguments, **named)
        open_at = call.arrival.time if was_done else since
        _answered(calls, call, answer, seen_end(time.perf_counter_ns(), open_at=open_at, since=since), since=since)
        return answer

    return wait


def _to_here(original: Any, calls: Calls) -> Callable[..., Any]:
    def to_here(rref: Any, *arguments: Any, **named: Any) -> Any:
        call = None if rref.is_owner() else _begun(calls, rref.owner_name, ())
        answer = original(rref, *arguments, **named)
        if call:
            _answered(calls, call, answer, time.perf_counter_ns(), since=call.arrival.time)
        return answer

    return to_here


def _begun(calls: Calls, target: Callable[[], str], payload: Any) -> Call | None:
    def begun() -> Call | None:
        arrival = calls.arrive()
        return None if arrival is None else Call(arrival, payload_bytes(payload), OPERATION, f"rpc {target()}")

    return calls.guarded(begun) if calls.are_reported else None


def _answered(calls: Calls, call: Call, answer: Any, end: int | None, *, since: int) -> None:
    size_bytes, operation, group = call.size_bytes, call.operation, call.group
    calls.ended(call.arrival, lambda: (size_bytes + payload_bytes(answer), operation, group), end, since)


def _worker(to: Any) -> str:
    """Return the name of a worker given by name, number or PyTorch's object for it."""
    from torch.distributed.rpc import api  # noqa: PLC0415 - torch is the user's

    return str(api._to_worker_info(to).name)


def payload_bytes(payload: Any) -> int:
    """Return the bytes of the tensors in a nested value, which may contain itself; pickling's overhead is left out."""
    size_bytes, waiting, seen = 0, [payload], set[int]()
    while waiting:
        part = waiting.pop()
        if hasattr(part, "element_size"):
            size_bytes += bytes_of([part])
        elif isinstance(part, (Mapping, list, tuple)) and id(part) not in seen:
            seen.add(id(part))
            waiting += part.values() if isinstance(part, Mapping) else part
    return size_bytes
