"""The moments when the last gradient of DistributedDataParallel's backward pass is ready here, and all are reduced.

DDP launches its all-reduces from C++; the last one begins when the gradient that comes last is ready. So a hook on that
one parameter tells when this rank had come, and the end of the pass when all had (docs/decisions/0014).
A forward without gradients says as little of the pass to come as one in `no_sync` that was left since: so whoever
synchronises by either of DDP's flags is believed. Two passes over one forward are told as two.
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

LOOKS = 3  # passes at first in which every gradient is looked at: DDP orders its buckets anew after the first
UNSEEN = 50
LOOKED_AGAIN = 500  # passes after which that is done once more, as what is trained may have changed


def matches(thing: Any) -> bool:
    """Return whether it is a DistributedDataParallel model."""
    return is_kind(thing, "torch.nn.parallel.DistributedDataParallel")


def watch(model: Any, timeline: Timeline) -> Any:
    """Has the model's gradient all-reduces reported after every backward pass, whatever hook reduces them.

    On a GPU that is when its queue comes there: the last gradient is computed, and what follows waited for all.
    Raises: InvalidInputError for gradients on other devices, UnavailableError for a GPU that does not answer.
    """
    follow(next(model.parameters()).device, timeline)
    reductions = _Reductions(model, timeline)
    timeline.on_close(reductions.let_go)
    after_backward(Watch(timeline), reductions.tell)
    return model


class _Reductions:
    """Notes when the last gradient of a pass is ready, and tells when all were reduced."""

    def __init__(self, model: Any, timeline: Timeline) -> None:
        self._model = model
        self._parameters = list(model.parameters())
        trained = [parameter for parameter in self._parameters if parameter.requires_grad]
        self._what = bytes_of(trained), "all_reduce", _group_name(model.process_group)
        self._timeline = timeline
        self._ready_at = 0
        self._ready: Mark | None = None  # the same on the device, if there is one
        self._last = 0  # the parameter whose gradient came last
        self._lasts: set[int] = set()  # of the passes in which all were looked at
        self._passes = 0  # since all were looked at
        self._unseen = 0  # passes of which no gradient was seen: of another model, or of other parts of this one
        self._hooks: list[Any] = []
        self._look_at(range(len(self._parameters)))

    def tell(self, is_through: bool) -> None:
        """Reports the pass that has just ended, if it was this model's and reduced anything."""
        end, ready_at, ready = time.perf_counter_ns(), self._ready_at, self._ready
        self._ready_at, self._ready = 0, None
        model = self._model
        if not is_through or not (model.require_forward_param_sync or model.require_backward_grad_sync):
            return  # it failed, or was one under no_sync
        if ready:
            self._tell_device(ready_at, end, ready)
        elif ready_at:
            self._timeline.waited(ready_at, end, self._what)
        self._choose(has_seen=ready_at > 0)

    def _tell_device(self, ready_at: int, end: int, ready: Mark) -> None:
        arrival = self._timeline.arrive(came=ready)
        if arrival is None:
            return
        arrival.time = ready_at
        if went := self._timeline.mark():
            self._timeline.collective_on_device(arrival, self._what, went, ready)
        else:
            self._timeline.collective_until(end, arrival, self._what, ready_at)

    def let_go(self) -> None:
        """Takes the hooks off."""
        while self._hooks:
            self._hooks.pop().remove()

    def _choose(self, *, has_seen: bool) -> None:
        """Looks at all gradients in the first passes and now and then, and else at those that came last in these."""
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
    """The same on its ranks and on no others: one run may have several groups of replicas."""
    from torch import distributed  # noqa: PLC0415 - torch is the user's, and only where it is used

    ranks = distributed.get_process_group_ranks(group)
    is_everybody = len(ranks) == distributed.get_world_size()
    return "data_parallel" if is_everybody else f"data_parallel {listed(ranks)}"
