"""Remote procedure calls of torch.distributed.rpc, and fetching what an RRef refers to."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

from crosswind.ingest.probe.torch_calls.calls import Call, Calls, bytes_of
from crosswind.ingest.probe.torch_calls.patches import Patches

OPERATION: Final = "rpc"


def watch_rpc(calls: Calls, patches: Patches) -> None:
    """Has calls report when they were made and when they were answered, with the bytes of all tensors both ways.

    Those who call one worker are a group, `rpc server`: its n-th call of a step is compared over its callers.
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
            pending[future] = call
        return future

    return invoke


def _wait(original: Any, calls: Calls, pending: WeakKeyDictionary[Any, Call]) -> Callable[..., Any]:
    def wait(future: Any, *arguments: Any, **named: Any) -> Any:
        call, begin = pending.pop(future, None), time.perf_counter_ns()
        answer = original(future, *arguments, **named)
        if call:
            calls.ended(_with(call, answer), begin)
        return answer

    return wait


def _to_here(original: Any, calls: Calls) -> Callable[..., Any]:
    def to_here(rref: Any, *arguments: Any, **named: Any) -> Any:
        call = None if rref.is_owner() else _begun(calls, rref.owner_name, ())
        answer = original(rref, *arguments, **named)
        if call:
            calls.ended(_with(call, answer), call.arrival.time)
        return answer

    return to_here


def _begun(calls: Calls, target: Callable[[], str], payload: Any) -> Call | None:
    if not calls.are_told:
        return None
    try:
        arrival = calls.arrive(())
        return None if arrival is None else Call(arrival, _payload_bytes(payload), OPERATION, f"rpc {target()}")
    except Exception as error:  # noqa: BLE001 - the user's training goes on whatever we get wrong
        calls.give_up(error)
        return None


def _with(call: Call, answer: Any) -> Call:
    return call._replace(size_bytes=call.size_bytes + _payload_bytes(answer))


def _worker(to: Any) -> str:
    """The name of a worker told by name, number or what PyTorch knows of it."""
    from torch.distributed.rpc import api  # noqa: PLC0415 - torch is the user's

    return str(api._to_worker_info(to).name)


def _payload_bytes(payload: Any) -> int:
    """Bytes of the tensors in what is sent or answered; nobody asks what pickling adds."""
    if hasattr(payload, "element_size"):
        return bytes_of([payload])
    if isinstance(payload, Mapping):
        return sum(map(_payload_bytes, payload.values()))
    return sum(map(_payload_bytes, payload)) if isinstance(payload, (list, tuple)) else 0
