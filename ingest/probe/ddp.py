"""Arrival and end of every gradient all-reduce of PyTorch's DistributedDataParallel."""

from typing import Any

from crosswind.data.errors import InvalidInputError
from crosswind.ingest.probe.timeline import Timeline


def watch_ddp(model: Any, timeline: Timeline) -> None:
    """Has a DDP model report every gradient bucket: arrival when it is ready here, end when it is reduced.

    The gradients are those of DDP's own all-reduce: divided by the size of the model's group, then summed over it, as
    PyTorch's `allreduce_hook` does. A model that already has a communication hook keeps it and goes unwatched (DDP
    allows one). Any hook in Python costs: 0.2 ms of processor time a bucket were measured, a little less than with
    PyTorch's own; few large buckets keep that small.
    Raises: InvalidInputError when the model is not DDP, or its gradients are not on the CPU.
    Source: torch.distributed.algorithms.ddp_comm_hooks.
    """
    import torch  # noqa: PLC0415 - torch is the user's, and only where it is used
    from torch import distributed  # noqa: PLC0415
    from torch.nn.parallel import DistributedDataParallel  # noqa: PLC0415

    if not isinstance(model, DistributedDataParallel):
        raise InvalidInputError(f"watch({type(model).__name__}): expected a DistributedDataParallel model")
    device = next(model.parameters()).device.type
    if device != "cpu":
        raise InvalidInputError(f"watch: gradients on {device!r} need device events, which are not there yet; only cpu")

    group = model.process_group  # not always everybody
    size = group.size()

    def timed(_: Any, bucket: distributed.GradBucket) -> torch.futures.Future[torch.Tensor]:  # DDP reads the types
        arrival = timeline.arrive()
        gradients = bucket.buffer().div_(size)
        size_bytes = gradients.numel() * gradients.element_size()

        def ended(future: Any) -> Any:
            if arrival:
                timeline.collective(arrival, size_bytes=size_bytes, operation="all_reduce", group="data_parallel")
            return future.value()[0]

        return distributed.all_reduce(gradients, group=group, async_op=True).get_future().then(ended)

    model.register_comm_hook(None, timed)
