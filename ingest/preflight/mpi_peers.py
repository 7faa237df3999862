"""Ranks that mpirun or srun started, communicating over MPI."""

import time
from collections.abc import Sequence
from typing import Any

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.preflight.peers import named, timed
from crosswind.ingest.probe.place import Place

POLL_SECONDS = 0.01
RESULTS_TAG = 77


class MpiPeers:
    """The ranks of COMM_WORLD."""

    def __init__(self, place: Place, seconds: float) -> None:
        """Wait so long for all ranks. Raises: UnavailableError if the launcher does not connect them."""
        from mpi4py import MPI  # noqa: PLC0415 - starts MPI, which only a rank may

        self._mpi, self._world = MPI, MPI.COMM_WORLD
        size = self._world.Get_size()
        if size != place.world_size:
            raise UnavailableError(
                f"MPI sees {size} rank{'s' if size > 1 else ''}, the launcher said {place.world_size}: "
                "expected a launcher of this MPI (srun --mpi=pmix, or its own mpirun)"
            )
        self.place = Place(self._world.Get_rank(), size, place.node, place.job_id)
        self.method, self.note = "mpi", ""
        self.nodes: Sequence[str] = ()
        self._wait_for_all(seconds)
        self.nodes = tuple(self._world.allgather(place.node))

    def go_on(self, *, wanted: bool) -> bool:
        """Return rank 0's decision on all ranks."""
        decided = bool(self._world.bcast(wanted, 0))
        self._world.Barrier()
        return decided

    def settle(self, peer: int, number: int) -> int:
        """Return the number of the lower of two ranks, on both."""
        if self.place.rank < peer:
            self._world.send(number, peer)
            return number
        return int(self._world.recv(source=peer))

    def exchange(self, peer: int, n_bytes: int, count: int) -> list[float]:
        """Return the seconds of each way; the rank of lower number begins."""
        buffer = bytearray(n_bytes)

        def to_and_fro() -> None:
            if self.place.rank < peer:
                self._world.Send(buffer, peer)
                self._world.Recv(buffer, peer)
            else:
                self._world.Recv(buffer, peer)
                self._world.Send(buffer, peer)

        return [seconds / 2 for seconds in timed(to_and_fro, count)]

    def all_reduce(self, n_bytes: int, count: int) -> list[float]:
        """Return the seconds of each."""
        give, take = (bytearray(max(4, n_bytes // 4 * 4)) for _ in range(2))
        kind = self._mpi.FLOAT
        return timed(lambda: self._world.Allreduce([give, kind], [take, kind]), count)

    def gather(self, value: object, seconds: float) -> list[Any] | None:
        """Gather point to point, so that a rank that hangs can be named. Raises: UnavailableError."""
        if self.place.rank:
            self._world.send(value, 0, RESULTS_TAG)
            return None
        gathered: dict[int, Any] = {0: value}
        ends = time.monotonic() + seconds
        while len(gathered) < self.place.world_size and time.monotonic() < ends:
            status = self._mpi.Status()
            if self._world.iprobe(tag=RESULTS_TAG, status=status):
                gathered[status.Get_source()] = self._world.recv(source=status.Get_source(), tag=RESULTS_TAG)
            else:
                time.sleep(POLL_SECONDS)
        missing = [rank for rank in range(self.place.world_size) if rank not in gathered]
        if missing:
            raise UnavailableError(f"{named(missing, self.nodes)}: no results within {seconds:.0f} s")
        return [gathered[rank] for rank in sorted(gathered)]

    def close(self) -> None:
        """Do nothing: mpi4py finalises at exit."""

    def _wait_for_all(self, seconds: float) -> None:
        """Wait at a barrier with a time-out."""
        request, ends = self._world.Ibarrier(), time.monotonic() + seconds
        while not request.Test():
            if time.monotonic() > ends:
                raise UnavailableError(f"rank {self.place.rank}: not all ranks came within {seconds:.0f} s")
            time.sleep(POLL_SECONDS)
