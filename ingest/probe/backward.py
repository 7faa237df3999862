"""When backward passes end: `torch.autograd.backward`, which `loss.backward()` calls, tells us."""

import functools
from collections.abc import Callable
from typing import Any

from crosswind.ingest.probe.timeline import Timeline


def after_backward(timeline: Timeline, action: Callable[[], None]) -> None:
    """Has something done after every backward pass of the run; what that computes, returns and raises stays as it is.

    The action must not raise.
    """
    import torch  # noqa: PLC0415 - torch is the user's

    original = torch.autograd.backward

    @functools.wraps(original)
    def watched(*arguments: Any, **named: Any) -> Any:
        result = original(*arguments, **named)
        action()
        return result

    def undo() -> None:
        nonlocal action
        action = _nothing  # somebody may have wrapped it after us, and their wrapper leads through ours
        if torch.autograd.backward is watched:
            torch.autograd.backward = original

    torch.autograd.backward = watched
    timeline.on_close(undo)


def _nothing() -> None:
    """What is done once the run is over."""
