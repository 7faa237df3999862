"""Arrival of every gradient bucket of PyTorch's DistributedDataParallel, and the end of the last."""

import logging
from typing import Any

from crosswind.data.errors import InvalidInputError, UnavailableError
from crosswind.ingest.probe.backward import watch_backward
from crosswind.ingest.probe.flight_recorder import FlightRecorder
from crosswind.ingest.probe.timeline import Timeline

CLASS = "torch.nn.parallel.distributed.DistributedDataParallel"
logger = logging.getLogger("crosswind")


def matches(thing: Any) -> bool:
    """Whether it is a DistributedDataParallel model."""
    return any(f"{each.__module__}.{each.__qualname__}" == CLASS for each in type(thing).__mro__)


def watch(model: Any, timeline: Timeline) -> Any:
    """Has the model's gradient all-reduces reported: by PyTorch's flight recorder, else by a communication hook.

    Raises: InvalidInputError when the gradients are not on the CPU, or there is a hook already and no flight recorder.
    """
    device = next(model.parameters()).device.type
    if device != "cpu":
        raise InvalidInputError(f"watch: gradients on {device!r} need device events, which are not there yet; only cpu")
    watch_backward(timeline)
    try:
        timeline.buckets = timeline.buckets or FlightRecorder(model.process_group.group_name)
    except UnavailableError as error:
        logger.info("gradient buckets are watched by a communication hook: %s", error)
        _hook(model, timeline)
    return model


def _hook(model: Any, timeline: Timeline) -> None:
    """Has every bucket reported by Python when it is ready here and when it is reduced.

    The gradients are those of DDP's own all-reduce: divided by the size of the model's group, then summed over it, as
    PyTorch's `allreduce_hook` does. It costs 0.1 to 0.2 ms of processor time a bucket, as any hook in Python does.
    Source: torch.distributed.algorithms.ddp_comm_hooks.
    """
    import torch  # noqa: PLC0415 - torch is the user's, and only where it is used
    from torch import distributed  # noqa: PLC0415

    group = model.process_group  # not always everybody
    size = group.size()

    def timed(_: Any, bucket: distributed.GradBucket) -> torch.futures.Future[torch.Tensor]:  # DDP reads the types
        arrival = timeline.arrive(is_bucket=True)
        gradients = bucket.buffer().div_(size)
        size_bytes = gradients.numel() * gradients.element_size()

        def ended(future: Any) -> Any:
            if arrival:
                timeline.collective(arrival, size_bytes=size_bytes, operation="all_reduce", group="data_parallel")
            return future.value()[0]

        return group.allreduce([gradients]).get_future().then(ended)

    model.register_comm_hook(None, timed)
