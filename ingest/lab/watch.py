"""Watching workers train one run to its end, and doing things at moments of it."""

import selectors
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crosswind.ingest.lab.crew import Worker, WorkerLostError
from crosswind.ingest.lab.order import BEGUN, ENDED, Order


@dataclass(order=True)
class Moment:
    """Something to do so many seconds after training began."""

    seconds: float
    do: Callable[[], None] = field(compare=False)


@dataclass(frozen=True)
class Trained:
    """When the rank's training loop began and ended, in ns UTC, and the last loss."""

    began_ns: int
    ended_ns: int
    loss: float

    @property
    def seconds(self) -> float:
        """From begin to end."""
        return (self.ended_ns - self.began_ns) * 1e-9


def train(orders: Sequence[tuple[Worker, Order]], moments: Sequence[Moment], limit_seconds: float) -> list[Trained]:
    """Has the workers train to the end of all their orders, and tells of each.

    Moments come after the first of them began, and no more once it has ended. Raises: WorkerLostError.
    """
    for worker, order in orders:
        worker.send(order)
    watch = _Watch([worker for worker, _ in orders], sorted(moments), time.monotonic() + limit_seconds)
    return watch.to_the_end()


class _Watch:
    def __init__(self, workers: Sequence[Worker], moments: list[Moment], deadline: float) -> None:
        self._workers = workers
        self._moments = moments
        self._deadline = deadline
        self._first_began: float | None = None
        self._began_ns: dict[Worker, int] = {}
        self._trained: dict[Worker, Trained] = {}

    def to_the_end(self) -> list[Trained]:
        with selectors.DefaultSelector() as selector:
            for worker in self._workers:
                selector.register(worker, selectors.EVENT_READ, worker)
            while len(self._trained) < len(self._workers):
                for key, _ in selector.select(self._patience()):
                    for answer in key.data.answers():
                        self._take(key.data, answer)
                self._do_what_is_due()
        return [self._trained[worker] for worker in self._workers]

    def _take(self, worker: Worker, answer: Mapping[str, Any]) -> None:
        is_first = worker is self._workers[0]
        if answer["event"] == BEGUN:
            self._began_ns[worker] = answer["ns"]
            self._first_began = time.monotonic() if is_first else self._first_began
        elif answer["event"] == ENDED:
            self._trained[worker] = Trained(self._began_ns[worker], answer["ns"], answer["loss"])
            if is_first:
                self._moments.clear()

    def _do_what_is_due(self) -> None:
        now = time.monotonic()
        while self._moments and self._first_began is not None and self._first_began + self._moments[0].seconds <= now:
            self._moments.pop(0).do()
        if now >= self._deadline and len(self._trained) < len(self._workers):
            late = [worker.post.node for worker in self._workers if worker not in self._trained]
            raise WorkerLostError(f"still training after the time limit on {', '.join(late)}")

    def _patience(self) -> float:
        due = self._deadline
        if self._moments and self._first_began is not None:
            due = min(due, self._first_began + self._moments[0].seconds)
        return max(0.0, due - time.monotonic())
