"""When a rank comes to its first and last gradient bucket of DistributedDataParallel, and when all are reduced.

DDP launches its all-reduces from C++, and keeps times of its own there; reading them costs some 10 us a step. A
communication hook in Python would tell of every bucket, and costs 0.1 to 0.2 ms of processor time each.
Source: torch/csrc/distributed/c10d/logger.cpp and reducer.cpp; DistributedDataParallel._get_ddp_logging_data.
"""

from collections.abc import Mapping
from typing import Any

from crosswind.data.errors import InvalidInputError
from crosswind.ingest.probe.adapters.kinds import is_kind
from crosswind.ingest.probe.backward import after_backward
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.torch_calls.groups import listed
from crosswind.ingest.probe.watch import Watch

SAMPLED_BY_TORCH = 100  # one iteration in so many, unless somebody asks for more
FIRST, READY, REDUCED = "backward_comm_time_start", "backward_compute_time_end", "backward_comm_time_end"


def matches(thing: Any) -> bool:
    """Whether it is a DistributedDataParallel model."""
    return is_kind(thing, "torch.nn.parallel.DistributedDataParallel")


def watch(model: Any, timeline: Timeline) -> Any:
    """Has the model's gradient all-reduces reported after every backward pass, whatever hook reduces them.

    Raises: InvalidInputError when the gradients are not on the CPU.
    """
    device = next(model.parameters()).device.type
    if device != "cpu":
        raise InvalidInputError(f"watch: gradients on {device!r} need device events, which are not there yet; only cpu")
    model._set_ddp_runtime_logging_sample_rate(1)
    timeline.on_close(lambda: model._set_ddp_runtime_logging_sample_rate(SAMPLED_BY_TORCH))
    after_backward(Watch(timeline), _Reductions(model, timeline).read)
    return model


class _Reductions:
    """Reads what DDP noted of the backward pass that has just ended."""

    def __init__(self, model: Any, timeline: Timeline) -> None:
        self._logger = model.logger
        self._group = _group_name(model.process_group)
        self._timeline = timeline
        self._seen = 0
        self._sizes: list[int] = []

    def read(self) -> None:
        """Reports the first and the last bucket, if this pass reduced any."""
        self._logger.set_runtime_stats_and_log()
        noted = self._logger._get_ddp_logging_data()
        times = noted.ints_map
        if times.get(FIRST, self._seen) != self._seen:  # a pass under no_sync notes nothing new
            self._seen = times[FIRST]
            self._report(times, noted)

    def _report(self, times: Mapping[str, int], noted: Any) -> None:
        if len(self._sizes) != times.get("num_buckets_reduced"):  # they are made anew after the first pass
            self._sizes = _bucket_sizes(noted.strs_map)
        if len(self._sizes) != 1:
            self._arrived(times[FIRST], None, self._sizes[0] if self._sizes else None)
        self._arrived(max(times[READY], times[FIRST]), times[REDUCED], self._sizes[-1] if self._sizes else None)

    def _arrived(self, at_ns: int, until_ns: int | None, size_bytes: int | None) -> None:
        if arrival := self._timeline.arrive(at_ns):
            end = None if until_ns is None else arrival.time + until_ns - at_ns
            what = (size_bytes, "all_reduce", self._group)
            self._timeline.collective_until(end, arrival, what, arrival.time)


def _group_name(group: Any) -> str:
    """The same on its ranks and on no others: one run may have several groups of replicas."""
    from torch import distributed  # noqa: PLC0415 - torch is the user's, and only where it is used

    ranks = distributed.get_process_group_ranks(group)
    is_everybody = len(ranks) == distributed.get_world_size()
    return "data_parallel" if is_everybody else f"data_parallel {listed(ranks)}"


def _bucket_sizes(texts: Mapping[str, str]) -> list[int]:
    """Bytes of each bucket, in the order in which they are reduced."""
    text = texts.get("rebuilt_bucket_sizes") or texts.get("bucket_sizes") or ""
    return [int(each) for each in text.split(",") if each.strip().isdigit()]
