"""MPI by mpi4py: a communicator of the same kind, whose calls report when this rank came and when it was done.

`comm = run.watch(MPI.COMM_WORLD)`; what it splits into is watched by asking again. Not seen: calls by other libraries
and by the unwatched communicator, and the end of a request that is waited for by `Request.Waitall` and its like.
Source: mpi4py's documentation, `mpi4py.MPI.Comm` and `mpi4py.MPI.Request`.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from crosswind.ingest.probe.timeline import Timeline

NAMED: Final = {
    "barrier": "barrier",
    "bcast": "broadcast",
    "allreduce": "all_reduce",
    "reduce": "reduce",
    "allgather": "all_gather",
    "allgatherv": "all_gather",
    "gather": "gather",
    "gatherv": "gather",
    "scatter": "scatter",
    "scatterv": "scatter",
    "alltoall": "all_to_all",
    "alltoallv": "all_to_all",
    "alltoallw": "all_to_all",
    "reduce_scatter": "reduce_scatter",
    "reduce_scatter_block": "reduce_scatter",
    "scan": "scan",
    "exscan": "scan",
}
TO_ONE: Final = {"send": "send", "ssend": "send", "recv": "recv"}


def matches(thing: Any) -> bool:
    """Whether it is a communicator within one group."""
    return any(f"{each.__module__}.{each.__name__}" == "mpi4py.MPI.Intracomm" for each in type(thing).__mro__)


def watch(comm: Any, timeline: Timeline) -> Any:
    """The same communicator, which reports; once the run is over it only passes on."""
    kind, reports = type(comm), _Reports(timeline, _group(comm))
    calls: dict[str, Callable[..., Any]] = {}
    for name, operation in (NAMED | TO_ONE).items():
        for spelled in (name, name.capitalize()):
            if hasattr(kind, spelled):
                calls[spelled] = _waited_for(getattr(kind, spelled), operation, reports)
        for spelled in (f"i{name}", f"I{name}"):
            if hasattr(kind, spelled):
                calls[spelled] = _asked_for(getattr(kind, spelled), operation, reports)
    return type(kind.__name__, (kind,), calls)(comm)


class _Reports:
    """What one kind of call says of itself."""

    def __init__(self, timeline: Timeline, group: str) -> None:
        self.timeline = timeline
        self._group = group

    def told(self, operation: str, size_bytes: int | None, peer: str | None) -> tuple[int | None, str, str]:
        """What the timeline wants to know of a call; transfers between two ranks are no calls of the whole group."""
        return size_bytes, operation, f"{self._group} {peer}" if peer else self._group


def _waited_for(method: Any, operation: str, reports: _Reports) -> Callable[..., Any]:
    """A method that is done when it returns."""

    def call(comm: Any, *arguments: Any, **named: Any) -> Any:
        arrival = reports.timeline.arrive()
        if arrival is None:
            return method(comm, *arguments, **named)
        value = method(comm, *arguments, **named)
        end = time.perf_counter_ns()
        told = reports.told(operation, _size(arguments, named), _peer(comm, operation, arguments, named))
        reports.timeline.collective_until(end, arrival, told, arrival.time)
        return value

    return call


def _asked_for(method: Any, operation: str, reports: _Reports) -> Callable[..., Any]:
    """A method that gives a request, which is done when that is waited for."""

    def call(comm: Any, *arguments: Any, **named: Any) -> Any:
        arrival = reports.timeline.arrive()
        request = method(comm, *arguments, **named)
        if arrival is None:
            return request
        told = reports.told(operation, _size(arguments, named), _peer(comm, operation, arguments, named))
        return _request(request, lambda end, since: reports.timeline.collective_until(end, arrival, told, since))

    return call


def _request(request: Any, tell: Callable[[int | None, int | None], None]) -> Any:
    """The request, which tells once how it ended: waited for, found to be done, or let go of."""
    kind, pending = type(request), [tell]

    def done(end: int | None, since: int | None) -> None:
        if pending:
            pending.pop()(end, since)

    def waits(name: str) -> Callable[..., Any]:
        def wait(self: Any, *arguments: Any, **named: Any) -> Any:
            since, value = time.perf_counter_ns(), getattr(kind, name)(self, *arguments, **named)
            done(time.perf_counter_ns(), since)
            return value

        return wait

    def tests(name: str) -> Callable[..., Any]:
        def test(self: Any, *arguments: Any, **named: Any) -> Any:
            value = getattr(kind, name)(self, *arguments, **named)
            if value is True or (isinstance(value, tuple) and value[0]):
                done(time.perf_counter_ns(), None)
            return value

        return test

    methods = {name: waits(name) for name in ("wait", "Wait")} | {name: tests(name) for name in ("test", "Test")}
    return type(kind.__name__, (kind,), methods | {"__del__": lambda _: done(None, None)})(request)


def _size(arguments: Sequence[Any], named: dict[str, Any]) -> int | None:
    """Bytes of the first buffer; None for objects that are pickled."""
    for each in (*arguments, *named.values()):
        buffer = each[0] if isinstance(each, list | tuple) and each else each
        try:
            return memoryview(buffer).nbytes
        except (TypeError, ValueError, BufferError):
            continue
    return None


def _peer(comm: Any, operation: str, arguments: Sequence[Any], named: dict[str, Any]) -> str | None:
    """The two ranks between which something is sent; a receiver that takes from any says so."""
    if operation not in TO_ONE.values():
        return None
    is_send = operation == "send"
    other = named.get("dest" if is_send else "source", arguments[1] if len(arguments) > 1 else -1)
    sender, receiver = (comm.rank, other) if is_send else (other, comm.rank)
    return f"{sender if sender >= 0 else 'any'} to {receiver}"


def _group(comm: Any) -> str:
    """The communicator's name, else its ranks in the world."""
    from mpi4py import MPI  # noqa: PLC0415 - it is the user's

    if comm == MPI.COMM_WORLD:
        return "world"
    if name := comm.Get_name():
        return str(name)
    own, world = comm.Get_group(), MPI.COMM_WORLD.Get_group()
    ranks = own.Translate_ranks(None, world)
    own.Free()
    world.Free()
    return f"ranks {','.join(map(str, sorted(ranks)))}"
