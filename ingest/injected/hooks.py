"""Hooks in PyTorch that show a training loop's steps: optimizers, data loaders, data-parallel models."""

import functools
import os
from collections.abc import Callable
from typing import Any

from crosswind.ingest.injected.loop import WatchedLoop
from crosswind.ingest.probe.torch_calls.process_groups import notice_calls


def install(mark: Callable[[], None]) -> None:
    """Watch the loop of this process from now on; torch must be imported. `mark` is called when it trains.

    Source: torch.optim.Optimizer, "register_optimizer_step_post_hook" (PyTorch 2.0 and later).
    """
    import torch  # noqa: PLC0415 - torch is the user's, and only where it is used
    from torch.nn.parallel import DistributedDataParallel  # noqa: PLC0415
    from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook  # noqa: PLC0415
    from torch.utils.data import DataLoader  # noqa: PLC0415
    from torch.utils.data.dataloader import _BaseDataLoaderIter  # noqa: PLC0415

    loop = WatchedLoop(learns=torch.is_grad_enabled, mark=mark)
    is_compiling = getattr(torch.compiler, "is_compiling", lambda: False)

    def stepped(optimizer: Any, *_: object) -> None:
        if not is_compiling():  # a compiler that follows us in here would find nothing that it can compile
            loop.optimizer_stepped(optimizer)
            loop.say_if_left_out()

    register_optimizer_step_post_hook(stepped)
    Optimizer.__init__ = _making(Optimizer.__init__, loop)
    os.register_at_fork(after_in_child=loop.begin_fork)
    DataLoader.__iter__ = _iterating(DataLoader.__iter__, loop)
    _BaseDataLoaderIter.__next__ = _fetching(_BaseDataLoaderIter.__next__, loop)
    DistributedDataParallel.__init__ = _building(DistributedDataParallel.__init__, loop)
    DistributedDataParallel.forward = _passing(DistributedDataParallel.forward, loop, is_compiling)
    if torch.distributed.is_available():
        notice_calls(lambda: loop.counts_calls, loop.collective_launched)


def _iterating(original: Callable[[Any], Any], loop: WatchedLoop) -> Callable[[Any], Any]:
    @functools.wraps(original)
    def iterate(loader: Any) -> Any:
        loop.data_requested()
        iterator = original(loader)
        loop.loader_ready()
        return iterator

    return iterate


def _fetching(original: Callable[[Any], Any], loop: WatchedLoop) -> Callable[[Any], Any]:
    @functools.wraps(original)
    def fetch(iterator: Any) -> Any:
        loop.data_requested()
        try:
            batch = original(iterator)
        except StopIteration:
            loop.data_ended()
            raise
        loop.data_arrived()
        return batch

    return fetch


def _building(original: Callable[..., None], loop: WatchedLoop) -> Callable[..., None]:
    @functools.wraps(original)
    def build(model: Any, *arguments: Any, **options: Any) -> None:
        original(model, *arguments, **options)
        loop.model_built(model)

    return build


def _making(original: Callable[..., None], loop: WatchedLoop) -> Callable[..., None]:
    @functools.wraps(original)
    def make(optimizer: Any, *arguments: Any, **options: Any) -> None:
        loop.has_optimizer = True
        original(optimizer, *arguments, **options)

    return make


def _passing(original: Callable[..., Any], loop: WatchedLoop, is_compiling: Callable[[], bool]) -> Callable[..., Any]:
    @functools.wraps(original)
    def forward(model: Any, *arguments: Any, **options: Any) -> Any:
        if not is_compiling() and model.training and model.require_backward_grad_sync:
            loop.forward_begun(model)
        return original(model, *arguments, **options)

    return forward
