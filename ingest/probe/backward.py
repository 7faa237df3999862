"""The ends of backward passes, seen through `torch.autograd.backward`, which `loss.backward()` calls."""

import functools
from collections.abc import Callable
from typing import Any

from crosswind.ingest.probe.torch_calls.patches import Patches
from crosswind.ingest.probe.watch import Watch


def after_backward(watch: Watch, ended: Callable[[bool], None]) -> None:
    """Has it told of every backward pass of the run whether it went through; what it gives and raises stays as it is.

    Passes within a pass, which checkpointing makes of recomputed parts, are none of their own.
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
                except Exception as error:  # noqa: BLE001 - the user's training goes on whatever we get wrong
                    watch.give_up(error)
        return result

    patches = Patches()
    patches.set(torch.autograd, "backward", watched)
    watch.timeline.on_close(patches.undo)
    watch.timeline.on_close(watch.switch_off)  # somebody may have wrapped ours, and their wrapper leads through it
