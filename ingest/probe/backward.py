"""When backward passes end: `torch.autograd.backward`, which `loss.backward()` calls, tells us."""

import functools
from collections.abc import Callable
from typing import Any

from crosswind.ingest.probe.torch_calls.patches import Patches
from crosswind.ingest.probe.watch import Watch


def after_backward(watch: Watch, action: Callable[[], None]) -> None:
    """Has something done after every backward pass of the run; what the pass gives and raises stays as it is."""
    import torch  # noqa: PLC0415 - torch is the user's

    original = torch.autograd.backward

    @functools.wraps(original)
    def watched(*arguments: Any, **named: Any) -> Any:
        result = original(*arguments, **named)
        if watch.is_on:
            watch.guarded(action)
        return result

    patches = Patches()
    patches.set(torch.autograd, "backward", watched)
    watch.timeline.on_close(patches.undo)
    watch.timeline.on_close(watch.switch_off)  # somebody may have wrapped ours, and their wrapper leads through it
