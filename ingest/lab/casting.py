"""The assignment of a run's ranks to workers, with their orders."""

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass

from crosswind.ingest.lab.hosts.hosts import Host
from crosswind.ingest.lab.plans.plan import Cohort
from crosswind.ingest.lab.workers.crew import Crew, Worker
from crosswind.ingest.lab.workers.order import Order

PORTS = range(29_500, 32_000)  # of rank 0's store; the next run takes the next one


@dataclass(frozen=True)
class Task:
    """One run to train."""

    cohort: Cohort
    run_id: str
    steps: int
    seed: int
    marks: tuple[int, ...] = ()
    is_recorded: bool = True


@dataclass(frozen=True)
class Part:
    """One run's ranks with their workers."""

    run_id: str
    ranks: tuple[tuple[Worker, Order], ...]

    @property
    def nodes(self) -> list[str]:
        """Return the nodes of its ranks, each once."""
        return sorted({worker.post.node for worker, _ in self.ranks})


class Casting:
    """Assigns workers to runs."""

    def __init__(self, net: Sequence[Host]) -> None:
        self._hosts = net
        self._ports = itertools.cycle(PORTS)
        self._cores = sorted(os.sched_getaffinity(0))

    def part(self, crew: Crew, task: Task) -> Part:
        """Return the ranks of one run; their workers wait for the order. Raises: UnavailableError."""
        cohort = task.cohort
        address, port = self._hosts[cohort.hosts[0]].address, next(self._ports)
        orders = [
            Order(
                run_id=task.run_id,
                workload=cohort.workload,
                rank=rank,
                world_size=cohort.world_size,
                local_rank=cohort.place(rank)[1],
                address=address,
                port=port,
                cores=self._cores_of(cohort, rank),
                steps=task.steps,
                batch=cohort.batch,
                bucket_mb=cohort.bucket_mb,
                threads=cohort.threads,
                seed=task.seed,
                link=cohort.link,
                marks=task.marks,
                is_recorded=task.is_recorded,
            )
            for rank in range(cohort.world_size)
        ]
        return Part(task.run_id, tuple(zip(crew.ready(cohort.places()), orders, strict=True)))

    def _cores_of(self, cohort: Cohort, rank: int) -> tuple[int, ...]:
        """Return the cores of a rank: ranks take turns, so that each has its own if there are enough."""
        first = rank * cohort.threads
        return tuple(self._cores[(first + thread) % len(self._cores)] for thread in range(cohort.threads))
