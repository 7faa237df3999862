"""The ends of backward passes, noticed in `torch.autograd.backward`, which `loss.backward()` calls."""

import functools
from collections.abc import Callable
from typing import Any

from crosswind.ingest.probe.torch_calls.patches import Patches
from crosswind.ingest.probe.watch import Watch


def after_backward(watch: Watch, ended: Callable[[bool], None]) -> None:
    """Call `ended` after every backward pass of the run with whether it succeeded; results and errors stay the same.

    Passes within a pass, for parts that checkpointing recomputes, do not count.
    """
    import torch  # noqa: PLC0415 - torch is the user's

    original, running = torch.autograd.backward, 0

    @functools.wraps(original)
    def watched(*arguments: Any, **named: Any) -> Any:
        nonlocal running
        running, is_through = running + 1, False
        try:
            result = original(*arguments, **named)
            is_through = True
        finally:
            running -= 1
            if watch.is_on and not running:
                try:
                    ended(is_through)
                except Exception as error:  # noqa: BLE001 - no error of ours may stop the user's training
                    watch.give_up(error)
        return result

    patches = Patches()
    patches.set(torch.autograd, "backward", watched)
    watch.timeline.on_close(patches.undo)
    watch.timeline.on_close(watch.switch_off)  # somebody may have wrapped ours, and their wrapper leads through it
