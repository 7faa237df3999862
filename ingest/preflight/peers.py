"""The protocol of communication among the ranks of an allocation."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.probe.place import Place


class Peers(Protocol):
    """All ranks that met, as one of them sees them.

    Methods that communicate raise UnavailableError when others do not answer.
    """

    method: str  # the transport: gloo, nccl, mpi; empty without
    place: Place
    nodes: Sequence[str]  # of every rank
    note: str  # a remark on the rendezvous

    def go_on(self, *, wanted: bool) -> bool:
        """Return rank 0's decision on all ranks; nobody returns before all have come."""
        ...

    def settle(self, peer: int, number: int) -> int:
        """Return the number of the lower of two ranks, on both."""
        ...

    def exchange(self, peer: int, n_bytes: int, count: int) -> list[float]:
        """Exchange so many messages with another rank. Return the seconds of each way."""
        ...

    def all_reduce(self, n_bytes: int, count: int) -> list[float]:
        """Sum a buffer of 32-bit numbers over all ranks repeatedly. Return the seconds of each."""
        ...

    def gather(self, value: object, seconds: float) -> list[Any] | None:
        """Return plain values of all ranks, on rank 0. Raises: UnavailableError naming ranks that send none in time."""
        ...

    def close(self) -> None:
        """Leave; never raises."""
        ...


class Alone:
    """A rank that meets nobody."""

    def __init__(self, place: Place, note: str = "") -> None:
        self.method = ""
        self.place = Place(0, 1, place.node, place.job_id)
        self.nodes: Sequence[str] = (place.node,)
        self.note = note

    def go_on(self, *, wanted: bool) -> bool:
        """Return the rank's own decision."""
        return wanted

    def settle(self, peer: int, number: int) -> int:  # noqa: ARG002 - as Peers has it
        """Refuse: there is no other rank. Raises: UnavailableError."""
        raise UnavailableError(f"rank {peer}: this rank is alone")

    def exchange(self, peer: int, n_bytes: int, count: int) -> list[float]:  # noqa: ARG002 - as above
        """Refuse: there is no other rank. Raises: UnavailableError."""
        raise UnavailableError(f"rank {peer}: this rank is alone")

    def all_reduce(self, n_bytes: int, count: int) -> list[float]:  # noqa: ARG002 - as above
        """Refuse: there is no other rank. Raises: UnavailableError."""
        raise UnavailableError("this rank is alone")

    def gather(self, value: object, seconds: float) -> list[Any] | None:  # noqa: ARG002 - as above
        """Return its own values."""
        return [value]

    def close(self) -> None:
        """Do nothing."""


def named(ranks: Sequence[int], nodes: Sequence[str] = ()) -> str:
    """`rank 3 (n4)` or `ranks 1, 2 and 5 more`, for messages."""
    labels = [f"{rank} ({nodes[rank]})" if rank < len(nodes) else str(rank) for rank in ranks[:8]]
    more = f" and {len(ranks) - 8} more" if len(ranks) > 8 else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(labels)}{more}"


def timed(action: Callable[[], object], count: int) -> list[float]:
    """Return the seconds of each of so many repetitions."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return times
