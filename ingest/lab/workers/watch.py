"""Watching workers train one run to its end, with actions at given steps."""

import selectors
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosswind.ingest.lab.workers.crew import Worker, WorkerLostError
from crosswind.ingest.lab.workers.order import BEGUN, ENDED, MARK, Order


@dataclass(frozen=True)
class Moment:
    """An action for when the run's rank 0 comes to this step, counted from 0."""

    step: int
    do: Callable[[], None]


@dataclass(frozen=True)
class Trained:
    """The beginning and end of the rank's training loop, in ns UTC, and the last loss."""

    began_ns: int
    ended_ns: int
    loss: float

    @property
    def seconds(self) -> float:
        """Return the time from begin to end."""
        return (self.ended_ns - self.began_ns) * 1e-9


def train(orders: Sequence[tuple[Worker, Order]], moments: Sequence[Moment], limit_seconds: float) -> list[Trained]:
    """Make the workers train to the end of all their orders. Return the times and loss of each.

    Moments are steps of the first of them, whose order must mark them. Raises: WorkerLostError.
    """
    for worker, order in orders:
        worker.send(order)
    watch = _Watch([worker for worker, _ in orders], moments, time.monotonic() + limit_seconds)
    return watch.to_the_end()


class _Watch:
    def __init__(self, workers: Sequence[Worker], moments: Sequence[Moment], deadline: float) -> None:
        self._workers = workers
        self._moments = moments
        self._deadline = deadline
        self._began_ns: dict[Worker, int] = {}
        self._trained: dict[Worker, Trained] = {}

    def to_the_end(self) -> list[Trained]:
        with selectors.DefaultSelector() as selector:
            for worker in self._workers:
                selector.register(worker, selectors.EVENT_READ, worker)
            while len(self._trained) < len(self._workers):
                ready = selector.select(max(0.0, self._deadline - time.monotonic()))
                if not ready:
                    late = [worker.post.node for worker in self._workers if worker not in self._trained]
                    raise WorkerLostError(f"still training after the time limit on {', '.join(late)}")
                for key, _ in ready:
                    for answer in key.data.answers():
                        self._take(key.data, answer)
        return [self._trained[worker] for worker in self._workers]

    def _take(self, worker: Worker, answer: Mapping[str, Any]) -> None:
        event = answer["event"]
        if event == BEGUN:
            self._began_ns[worker] = answer["ns"]
        elif event == MARK and worker is self._workers[0]:
            for moment in self._moments:
                if moment.step == answer["step"]:
                    moment.do()
        elif event == ENDED:
            self._trained[worker] = Trained(self._began_ns[worker], answer["ns"], answer["loss"])
