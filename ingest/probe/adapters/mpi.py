"""MPI by mpi4py: a communicator of the same kind, whose calls report this rank's arrival and the end.

`comm = run.watch(MPI.COMM_WORLD)`; communicators split from it need calls of their own. Not seen: calls by other
libraries and by the unwatched communicator, and the end of a request that is waited for by `Request.Waitall` and so
on, or so late that it may have been done long before: a test by MPI would make the request progress. Source: mpi4py's
documentation, `mpi4py.MPI.Comm` and `mpi4py.MPI.Request`.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any, Final

from crosswind.ingest.probe.adapters.kinds import is_kind
from crosswind.ingest.probe.step import Arrival, What
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.torch_calls.groups import WORLD, listed
from crosswind.ingest.probe.watch import Describe, Watch, seen_end, waited_end

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
SENDS: Final = ("send", "ssend")
RECEIVES: Final = ("recv",)
TRANSFER: Final = "transfer"  # one word for both sides: the group says who receives
UNNAMED: Final = ("MPI COMMUNICATOR ", "MPI COMM ")  # Open MPI numbers what has no name; ompi/communicator/comm.c


def matches(thing: Any) -> bool:
    """Return whether it is a communicator within one group."""
    return is_kind(thing, "mpi4py.MPI.Intracomm")


def watch(comm: Any, timeline: Timeline) -> Any:
    """Return the same communicator, which reports; once the run is over it only passes on."""
    kind, watch, group = type(comm), Watch(timeline), _group(comm)
    calls: dict[str, Callable[..., Any]] = {}
    for name in (*NAMED, *SENDS, *RECEIVES):
        for spelled in (name, name.capitalize()):
            if hasattr(kind, spelled):
                calls[spelled] = watch.around(getattr(kind, spelled), _described(name, group))
        for spelled in (f"i{name}", f"I{name}"):
            if hasattr(kind, spelled):
                calls[spelled] = _launching(getattr(kind, spelled), _described(name, group), watch)
    return type(kind.__name__, (kind,), calls)(comm)


@dataclass(frozen=True)
class _Group:
    """The purpose of a communicator, and its members by their rank in the world."""

    purpose: str
    ranks: Sequence[int]

    @property
    def name(self) -> str:
        """Return a name that is the same on its ranks alone."""
        return WORLD if self.purpose == WORLD else f"{self.purpose} {listed(self.ranks)}"

    def transfer(self, sender: int, receiver: int) -> str:
        """Return the name of a transfer from one to another; a receiver that takes from anybody says so."""
        return f"{self.purpose} {self._member(sender)}>{self._member(receiver)}"

    def _member(self, rank: int) -> str:
        return str(self.ranks[rank]) if rank >= 0 else "*"


def _group(comm: Any) -> _Group:
    from mpi4py import MPI  # noqa: PLC0415 - it is the user's

    own, world = comm.Get_group(), MPI.COMM_WORLD.Get_group()
    ranks = tuple(own.Translate_ranks(None, world))
    own.Free()
    world.Free()
    if comm == MPI.COMM_WORLD:
        return _Group(WORLD, ranks)
    name = str(comm.Get_name())
    return _Group("ranks" if name.startswith(UNNAMED) else name or "ranks", ranks)


def _described(name: str, group: _Group) -> Describe:
    """Return the function that describes a call by its arguments, of which the communicator is the first."""

    def collective(arguments: tuple[Any, ...], named: Mapping[str, Any]) -> What:
        return _bytes(arguments[1:], named), NAMED[name], group.name

    def transfer(arguments: tuple[Any, ...], named: Mapping[str, Any]) -> What:
        own, is_send = arguments[0].rank, name in SENDS
        other = named.get("dest" if is_send else "source", arguments[2] if len(arguments) > 2 else -1)
        between = group.transfer(own, other) if is_send else group.transfer(other, own)
        return _bytes(arguments[1:], named), TRANSFER, between

    return collective if name in NAMED else transfer


def _bytes(arguments: Sequence[Any], named: Mapping[str, Any]) -> int | None:
    """Return the bytes of the first buffer; None for objects that are pickled."""
    for argument in (*arguments, *named.values()):
        buffer = argument[0] if isinstance(argument, list | tuple) and argument else argument
        try:
            return memoryview(buffer).nbytes
        except (TypeError, ValueError, BufferError):
            continue
    return None


def _launching(method: Any, what: Describe, watch: Watch) -> Callable[..., Any]:
    """Return the wrapper of a method that returns a request: the end is that of the wait for it."""

    @wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        arrival = watch.arrive()
        request = method(*arguments, **named)
        if arrival is None:
            return request
        reporting = watch.guarded(lambda: _reporting(request, arrival, what(arguments, named), watch))
        return request if reporting is None else reporting

    return call


def _reporting(request: Any, arrival: Arrival, description: What, watch: Watch) -> Any:
    """Return the request with a report of its end."""
    reporting = _kind(request.__class__)(request)
    reporting._report = lambda end, since: watch.ended(arrival, lambda: description, end, since)
    reporting._open_at = arrival.time
    return reporting


@cache
def _kind(kind: Any) -> Any:
    """Return that kind of request, which reports when it is waited for, tested as done, or deleted."""
    methods = {name: _waiting(getattr(kind, name)) for name in ("wait", "Wait")}
    methods |= {name: _asking(getattr(kind, name)) for name in ("test", "Test")}
    unset = {"_report": None, "_open_at": 0}
    return type(kind.__name__, (kind,), methods | unset | {"__del__": lambda request: _done(request, None, None)})


def _waiting(method: Any) -> Callable[..., Any]:
    @wraps(method)
    def wait(request: Any, *arguments: Any, **named: Any) -> Any:
        since = time.perf_counter_ns()
        value = method(request, *arguments, **named)
        _done(request, waited_end(time.perf_counter_ns(), open_at=request._open_at, since=since), since)
        return value

    return wait


def _asking(method: Any) -> Callable[..., Any]:
    @wraps(method)
    def test(request: Any, *arguments: Any, **named: Any) -> Any:
        value, called = method(request, *arguments, **named), time.perf_counter_ns()
        if value is True or (isinstance(value, tuple) and value[0]):
            _done(request, seen_end(called, open_at=request._open_at, since=called), None)
        else:
            request._open_at = called
        return value

    return test


def _done(request: Any, end: int | None, since: int | None) -> None:
    report, request._report = request._report, None
    if report:
        report(end, since)
