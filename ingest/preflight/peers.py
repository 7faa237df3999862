"""The ranks of an allocation to each other: what a way of communicating has to give."""

from collections.abc import Sequence
from typing import Any, Protocol

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.probe.place import Place


class Peers(Protocol):
    """All ranks that met, as one of them sees them.

    Whatever talks to others raises UnavailableError when they do not answer.
    """

    method: str  # what carries messages: gloo, nccl, mpi; empty without
    place: Place
    nodes: Sequence[str]  # of every rank
    note: str  # what there is to say of the meeting

    def go_on(self, *, wanted: bool) -> bool:
        """Return what rank 0 wants, on all ranks at once: nobody returns before all have come."""
        ...

    def settle(self, peer: int, number: int) -> int:
        """The number that the lower of two ranks has, on both."""
        ...

    def exchange(self, peer: int, n_bytes: int, count: int) -> list[float]:
        """Sends so many messages to and fro with another rank; seconds of each way."""
        ...

    def all_reduce(self, n_bytes: int, count: int) -> list[float]:
        """Adds up a buffer of 32-bit numbers over all ranks, again and again; seconds of each."""
        ...

    def gather(self, value: object, seconds: float) -> list[Any] | None:
        """Plain values of all ranks, on rank 0. Raises: UnavailableError naming the ranks that send none in time."""
        ...

    def close(self) -> None:
        """Parts; never raises."""
        ...


class Alone:
    """A rank that meets nobody."""

    def __init__(self, place: Place, note: str = "") -> None:
        self.method = ""
        self.place = Place(0, 1, place.node, place.job_id)
        self.nodes: Sequence[str] = (place.node,)
        self.note = note

    def go_on(self, *, wanted: bool) -> bool:
        """As wanted."""
        return wanted

    def settle(self, peer: int, number: int) -> int:  # noqa: ARG002 - as Peers has it
        """There is nobody. Raises: UnavailableError."""
        raise UnavailableError(f"rank {peer}: this rank is alone")

    def exchange(self, peer: int, n_bytes: int, count: int) -> list[float]:  # noqa: ARG002 - as above
        """There is nobody. Raises: UnavailableError."""
        raise UnavailableError(f"rank {peer}: this rank is alone")

    def all_reduce(self, n_bytes: int, count: int) -> list[float]:  # noqa: ARG002 - as above
        """There is nobody. Raises: UnavailableError."""
        raise UnavailableError("this rank is alone")

    def gather(self, value: object, seconds: float) -> list[Any] | None:  # noqa: ARG002 - as above
        """Its own."""
        return [value]

    def close(self) -> None:
        """Nothing to part from."""


def named(ranks: Sequence[int], nodes: Sequence[str] = ()) -> str:
    """`rank 3 (n4)` or `ranks 1, 2 and 5 more`, for messages."""
    labels = [f"{rank} ({nodes[rank]})" if rank < len(nodes) else str(rank) for rank in ranks[:8]]
    more = f" and {len(ranks) - 8} more" if len(ranks) > 8 else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(labels)}{more}"
