"""When backward passes begin and end: `torch.autograd.backward`, which `loss.backward()` calls, tells us."""

import functools
import time
from typing import Any

from crosswind.ingest.probe.timeline import Timeline


def watch_backward(timeline: Timeline) -> None:
    """Has every backward pass noted until the run ends; what it computes, returns and raises stays as it is."""
    import torch  # noqa: PLC0415 - torch is the user's

    original = torch.autograd.backward

    @functools.wraps(original)
    def timed(*arguments: Any, **named: Any) -> Any:
        begin = time.perf_counter_ns()
        try:
            return original(*arguments, **named)
        finally:
            timeline.backward(begin)

    def undo() -> None:
        if torch.autograd.backward is timed:  # else somebody wrapped it after us, and their wrapper leads through ours
            torch.autograd.backward = original

    torch.autograd.backward = timed
    timeline.on_close(undo)
