"""Spark's barrier jobs: `context = run.watch(BarrierTaskContext.get())` in the function of `mapPartitions`.

`barrier()` and `allGather()` of the returned context report, as `spark_barrier` and `spark_all_gather`: a task polls
once a second whether all have come, so tasks do not see the end at the same moment, as elsewhere. A task's rank is its
partition; pass the id that `announce_task` returns to `crosswind.run`, for Spark does not set the environment variables
that the probe reads. Source: pyspark.BarrierTaskContext.
"""

import os
from typing import Any

from crosswind.ingest.probe.adapters.kinds import is_kind
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.watch import Watch

GROUP = "stage"


def matches(thing: Any) -> bool:
    """Return whether it is the context of a barrier task."""
    return is_kind(thing, "pyspark.BarrierTaskContext")


def watch(context: Any, timeline: Timeline) -> Any:
    """Return a stand-in for the context that reports."""
    return _Watched(context, Watch(timeline))


def announce_task(context: Any, job: str) -> str:
    """Set the rank of this process for the probe, and return the id of its run: an attempt is a run of its own.

    Spark keeps Python workers for later tasks, so every task has to call this.
    """
    os.environ |= {"RANK": str(context.partitionId()), "WORLD_SIZE": str(len(context.getTaskInfos()))}
    attempt = context.attemptNumber()
    return f"{job}-restart{attempt}" if attempt else job


class _Watched:
    """A context whose barriers are timed; everything else is the context's own."""

    def __init__(self, context: Any, watch: Watch) -> None:
        self._context = context
        self.barrier = watch.around(context.barrier, lambda *_: (None, "spark_barrier", GROUP))
        self.allGather = watch.around(
            context.allGather, lambda arguments, named: (_bytes(*arguments, **named), "spark_all_gather", GROUP)
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_context"), name)


def _bytes(message: str = "") -> int:
    """Return the bytes that this task sends to the others."""
    return len(message.encode())
