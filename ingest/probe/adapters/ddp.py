"""DistributedDataParallel: when this rank's last gradient of a backward pass was ready, and when all were reduced.

DDP launches its all-reduces from C++; the last one begins when the last gradient is ready. So a hook on that one
parameter gives this rank's arrival, and the end of the pass that of all (docs/decisions/0014).
A forward without gradients, or in `no_sync` that was left since, does not decide about the next pass: a pass counts as
synchronising if either of DDP's flags says so. Two passes over one forward are reported as two.
Source: Tensor.register_post_accumulate_grad_hook; torch/nn/parallel/distributed.py, `_post_forward`.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any

from crosswind.ingest.probe.adapters.kinds import is_kind
from crosswind.ingest.probe.backward import after_backward
from crosswind.ingest.probe.cuda_events import follow
from crosswind.ingest.probe.device_clock import Mark
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.torch_calls.calls import bytes_of
from crosswind.ingest.probe.torch_calls.groups import listed
from crosswind.ingest.probe.watch import Watch

LOOKS = 3  # first passes in which every gradient is watched: DDP reorders its buckets after the first
UNSEEN = 50
LOOKED_AGAIN = 500  # passes after which that is repeated, as the trained parameters may have changed


def matches(thing: Any) -> bool:
    """Return whether it is a DistributedDataParallel model."""
    return is_kind(thing, "torch.nn.parallel.DistributedDataParallel")


def watch(model: Any, timeline: Timeline) -> Any:
    """Report the model's gradient all-reduces after every backward pass, whatever hook reduces them.

    On a GPU the times are those of its queue: when the last gradient was computed, and when all were reduced.
    Raises: InvalidInputError for gradients on other devices, UnavailableError for a GPU that does not answer.
    """
    follow(next(model.parameters()).device, timeline)
    reductions = _Reductions(model, timeline)
    timeline.on_close(reductions.let_go)
    after_backward(Watch(timeline), reductions.report)
    return model


class _Reductions:
    """Notes when the last gradient of a pass is ready, and reports when all were reduced."""

    def __init__(self, model: Any, timeline: Timeline) -> None:
        self._model = model
        self._parameters = list(model.parameters())
        trained = [parameter for parameter in self._parameters if parameter.requires_grad]
        self._what = bytes_of(trained), "all_reduce", _group_name(model.process_group)
        self._timeline = timeline
        self._ready_at = 0
        self._ready: Mark | None = None  # the same on the device, if there is one
        self._last = 0  # the parameter whose gradient came last
        self._lasts: set[int] = set()  # of the passes in which all were watched
        self._passes = 0  # since all were watched
        self._unseen = 0  # passes without a gradient seen: of another model, or of other parts of this one
        self._hooks: list[Any] = []
        self._look_at(range(len(self._parameters)))

    def report(self, is_through: bool) -> None:
        """Report the pass that has just ended, if it was this model's and reduced anything."""
        end, ready_at, ready = time.perf_counter_ns(), self._ready_at, self._ready
        self._ready_at, self._ready = 0, None
        model = self._model
        if not is_through or not (model.require_forward_param_sync or model.require_backward_grad_sync):
            return  # it failed, or was one under no_sync
        if ready:
            self._report_on_device(ready_at, end, ready)
        elif ready_at:
            self._timeline.waited(ready_at, end, self._what)
        self._choose(has_seen=ready_at > 0)

    def _report_on_device(self, ready_at: int, end: int, ready: Mark) -> None:
        arrival = self._timeline.arrive(came=ready)
        if arrival is None:
            return
        arrival.time = ready_at
        if went := self._timeline.mark():
            self._timeline.collective_on_device(arrival, self._what, went, ready)
        else:
            self._timeline.collective_until(end, arrival, self._what, ready_at)

    def let_go(self) -> None:
        """Remove the hooks."""
        while self._hooks:
            self._hooks.pop().remove()

    def _choose(self, *, has_seen: bool) -> None:
        """Watch all gradients in the first passes and from time to time, and else those that came last in these."""
        self._unseen = 0 if has_seen else self._unseen + 1
        if self._unseen == UNSEEN or self._passes == LOOKS + LOOKED_AGAIN:
            self._passes, self._unseen, self._lasts = 0, 0, set()
            self._look_at(range(len(self._parameters)))
        elif has_seen:
            self._passes += 1
            if self._passes <= LOOKS:
                self._lasts.add(self._last)
            if self._passes == LOOKS:
                self._look_at(self._lasts)

    def _look_at(self, places: Iterable[int]) -> None:
        self.let_go()
        for place in places:
            parameter = self._parameters[place]
            if parameter.requires_grad:  # it may have been frozen since
                self._hooks.append(parameter.register_post_accumulate_grad_hook(self._noter(place)))

    def _noter(self, place: int) -> Callable[[Any], None]:
        def note(_: Any) -> None:
            self._ready_at, self._last = time.perf_counter_ns(), place

        def note_on_device(_: Any) -> None:
            self._ready_at, self._last = time.perf_counter_ns(), place
            self._ready = self._timeline.mark()

        return note_on_device if self._timeline.has_device else note


def _group_name(group: Any) -> str:
    """Return a name of the group, the same on its ranks alone: one run may have several groups of replicas."""
    from torch import distributed  # noqa: PLC0415 - torch is the user's, and only where it is used

    ranks = distributed.get_process_group_ranks(group)
    is_everybody = len(ranks) == distributed.get_world_size()
    return "data_parallel" if is_everybody else f"data_parallel {listed(ranks)}"
