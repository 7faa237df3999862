"""Spark's barrier jobs: `context = run.watch(BarrierTaskContext.get())` in the function of `mapPartitions`.

`barrier()` and `allGather()` of the context that is given back report. A task's rank is its partition; pass
`spark_options(context)` to `crosswind.run`, for tasks are not told their rank by the environment that the probe reads.
Source: pyspark.BarrierTaskContext.
"""

import os
import time
from typing import Any

from crosswind.ingest.probe.timeline import Timeline


def matches(thing: Any) -> bool:
    """Whether it is the context of a barrier task."""
    return any(each.__name__ == "BarrierTaskContext" for each in type(thing).__mro__)


def watch(context: Any, timeline: Timeline) -> Any:
    """What acts as the context, and reports."""
    return _Watched(context, timeline)


def announce_task(context: Any, job: str) -> str:
    """Tells the probe of this process which rank it is, and gives the id of its run: an attempt is a run of its own.

    Spark keeps Python workers for later tasks, so what is told is told anew by each.
    """
    os.environ |= {"RANK": str(context.partitionId()), "WORLD_SIZE": str(len(context.getTaskInfos()))}
    attempt = context.attemptNumber()
    return f"{job}-restart{attempt}" if attempt else job


class _Watched:
    """A context whose barriers are timed; everything else is the context's own."""

    def __init__(self, context: Any, timeline: Timeline) -> None:
        self._context = context
        self._timeline = timeline

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def barrier(self) -> None:
        """Waits for all tasks of the stage."""
        self._timed("barrier", None)

    def allGather(self, message: str = "") -> list[str]:  # noqa: N802 - Spark's name
        """The messages of all tasks of the stage, in the order of their partitions."""
        gathered: list[str] = self._timed("all_gather", message)
        return gathered

    def _timed(self, operation: str, message: str | None) -> Any:
        arrival = self._timeline.arrive()
        value = self._context.barrier() if message is None else self._context.allGather(message)
        if arrival is not None:
            size_bytes = None if message is None else len(message.encode())
            told = (size_bytes, operation, "stage")
            self._timeline.collective_until(time.perf_counter_ns(), arrival, told, arrival.time)
        return value
