"""A GPU as the probe sees it: queues of work that it goes through while the host does something else."""

from dataclasses import dataclass, field
from typing import Protocol

import pytest


class HasNow(Protocol):
    now: int


@dataclass
class Event:
    gpu: "Gpu"
    passed_at: int

    def query(self) -> bool:
        self.gpu.complain()
        return not self.gpu.hangs and self.passed_at <= self.gpu.clock.now

    def elapsed_time(self, end_event: "Event") -> float:
        assert self.query(), "an event was asked for the time since one that is not passed"
        assert end_event.query(), "an event was asked for its time before it was passed"
        return (end_event.passed_at - self.passed_at) / 1e6


@dataclass
class Gpu:
    """One queue, or two of which the other runs beside; `work` puts kernels into it."""

    clock: HasNow
    free_at: int = 0
    queue: int = 1
    is_captured: bool = False
    is_one_queue: bool = False
    is_broken: bool = False
    hangs: bool = False
    given_back: list[Event] = field(default_factory=list)

    def work(self, nanoseconds: int) -> None:
        self.free_at = max(self.free_at, self.clock.now) + nanoseconds

    def complain(self) -> None:
        if self.is_broken:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    def are_refused(self) -> bool:
        return self.is_captured

    def record(self) -> tuple[Event, int]:
        assert not self.is_captured
        self.complain()
        return Event(self, max(self.free_at, self.clock.now)), self.queue

    def record_aside(self) -> Event:
        assert not self.is_captured
        self.complain()
        return Event(self, max(self.free_at, self.clock.now) if self.is_one_queue else self.clock.now)

    def give_back(self, event: Event) -> None:
        self.given_back.append(event)


class Ticking:
    """A clock that goes on by itself whenever it is read, as a real one does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tick: int = 1000) -> None:
        self._now, self._tick = 0, tick
        monkeypatch.setattr("time.perf_counter_ns", self.read)

    @property
    def now(self) -> int:
        return self._now

    def read(self) -> int:
        self._now += self._tick
        return self._now

    def pass_by(self, nanoseconds: int) -> int:
        self._now += nanoseconds
        return self._now
