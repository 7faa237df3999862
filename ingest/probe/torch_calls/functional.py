"""Functional collectives: DTensor's, and so those of tensor parallelism."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from crosswind.ingest.probe.torch_calls.calls import Call, Calls, bytes_of, tensors_in
from crosswind.ingest.probe.torch_calls.patches import Patches
from crosswind.ingest.probe.watch import waited_end

# Packet of torch.ops._c10d_functional: operation, and the place of the group among its arguments; the input is first.
# Source: torch/csrc/distributed/c10d/Functional.cpp.
PACKETS: Final[Mapping[str, tuple[str, int]]] = {
    "all_reduce": ("all_reduce", 2),
    "all_reduce_": ("all_reduce", 2),
    "all_reduce_coalesced": ("all_reduce", 2),
    "all_gather_into_tensor": ("all_gather", 2),
    "all_gather_into_tensor_out": ("all_gather", 2),
    "all_gather_into_tensor_coalesced": ("all_gather", 2),
    "reduce_scatter_tensor": ("reduce_scatter", 3),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter", 3),
    "all_to_all_single": ("all_to_all", 3),
    "broadcast": ("broadcast", 2),
    "broadcast_": ("broadcast", 2),
}
MOST_PENDING: Final = 1000  # unused results are never waited for

Pending = dict[int | None, Call]  # by the address of the result


def watch_functional(calls: Calls, patches: Patches) -> None:
    """Make functional collectives report arrivals, and the waits for their results ends."""
    import torch  # noqa: PLC0415 - torch is the user's
    from torch.distributed import _functional_collectives  # noqa: F401, PLC0415 - it makes the operators

    pending: Pending = {}
    packets = torch.ops._c10d_functional
    for name in PACKETS:
        if packet := getattr(packets, name, None):
            patches.set(packet, "_op", _Packet(packet._op, calls, pending, name))
    patches.set(packets.wait_tensor, "_op", _Wait(packets.wait_tensor._op, calls, pending))


class _Stand:
    """Stands in for an operator: PyTorch's tables find a packet by the hash of its operator."""

    def __init__(self, original: Any, calls: Calls, pending: Pending) -> None:
        from torch import Tensor  # noqa: PLC0415 - torch is the user's
        from torch.distributed._functional_collectives import AsyncCollectiveTensor  # noqa: PLC0415
        from torch.nn import Parameter  # noqa: PLC0415

        self._original, self._calls, self._pending = original, calls, pending
        self._real = {Tensor, Parameter, AsyncCollectiveTensor}  # a compiler traces with fakes, which are subclasses

    def __hash__(self) -> int:
        return hash(self._original)

    def __eq__(self, other: object) -> bool:
        return self is other or bool(self._original == other)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


class _Packet(_Stand):
    def __init__(self, original: Any, calls: Calls, pending: Pending, name: str) -> None:
        super().__init__(original, calls, pending)
        self._operation, self._group = PACKETS[name]

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        call = self._calls.guarded(lambda: self._begun(arguments)) if self._calls.are_reported else None
        result = self._original(*arguments, **named)
        if call:
            self._calls.guarded(lambda: self._launched(call, tensors_in(result)))
        return result

    def _begun(self, arguments: tuple[Any, ...]) -> Call | None:
        tensors = tensors_in(arguments[0])
        arrival = self._calls.arrive_with(tensors) if {type(tensor) for tensor in tensors} <= self._real else None
        if arrival is None:
            return None
        parts = arguments[1] if self._operation == "all_gather" else 1  # the input is one rank's part
        name = self._calls.groups.name_by_key(arguments[self._group])
        return Call(arrival, parts * bytes_of(tensors), self._operation, name)

    def _launched(self, call: Call, results: Sequence[Any]) -> None:
        for result in results:
            if type(result) in self._real:
                self._pending[_address(result)] = call
        while len(self._pending) > MOST_PENDING:
            del self._pending[next(iter(self._pending))]


class _Wait(_Stand):
    def __call__(self, tensor: Any, *arguments: Any, **named: Any) -> Any:
        call = self._calls.guarded(lambda: self._awaited(tensor)) if self._pending else None
        is_first = call is not None and call.arrival.operation is None  # of several results of one coalesced collective
        if call and is_first and call.arrival.came:
            return self._calls.wait_on_device(call, lambda: self._original(tensor, *arguments, **named))
        since = time.perf_counter_ns()
        result = self._original(tensor, *arguments, **named)
        if call and is_first:
            end = waited_end(time.perf_counter_ns(), open_at=call.arrival.time, since=since)
            self._calls.report_end(call, end, since)
        return result

    def _awaited(self, tensor: Any) -> Call | None:
        return self._pending.pop(_address(tensor), None) if type(tensor) in self._real else None


def _address(tensor: Any) -> int | None:
    """Return the address of its data; None if there is none."""
    return None if tensor.is_sparse or tensor.is_meta else int(tensor.data_ptr())
