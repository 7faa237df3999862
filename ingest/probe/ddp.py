"""Arrival and end of every gradient all-reduce of PyTorch's DistributedDataParallel."""

from typing import Any

from crosswind.data.errors import InvalidInputError
from crosswind.ingest.probe.timeline import Timeline


def watch_ddp(model: Any, timeline: Timeline) -> None:
    """Has a DDP model report every gradient bucket: arrival when it is ready here, end when it is reduced.

    The gradients are those of DDP's own all-reduce: the hook registered is PyTorch's `allreduce_hook` with a clock
    around it. A model that already has a communication hook keeps it and goes unwatched (DDP allows one).
    Raises: InvalidInputError when the model is not DDP, or its gradients are not on the CPU.
    Source: torch.distributed.algorithms.ddp_comm_hooks.
    """
    import torch  # noqa: PLC0415 - torch is the user's, and only where it is used
    from torch.distributed import GradBucket  # noqa: PLC0415
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook  # noqa: PLC0415
    from torch.nn.parallel import DistributedDataParallel  # noqa: PLC0415

    if not isinstance(model, DistributedDataParallel):
        raise InvalidInputError(f"watch({type(model).__name__}): expected a DistributedDataParallel model")
    device = next(model.parameters()).device.type
    if device != "cpu":
        raise InvalidInputError(f"watch: gradients on {device!r} need device events, which are not there yet; only cpu")

    def timed(group: Any, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:  # DDP checks the annotations
        arrival = timeline.arrive()
        if arrival is None:
            return allreduce_hook(group, bucket)
        buffer = bucket.buffer()
        size = buffer.numel() * buffer.element_size()

        def ended(future: Any) -> Any:
            timeline.collective(arrival, size_bytes=size, operation="all_reduce", group="data_parallel")
            return future.value()

        return allreduce_hook(group, bucket).then(ended)

    model.register_comm_hook(None, timed)
