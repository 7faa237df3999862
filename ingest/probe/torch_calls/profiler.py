"""torch.profiler around some steps of this rank; the program's own profiler always has priority.

PyTorch allows one profiler at a time. Ours does not start while another one is set up, and gives way to one that the
program sets up meanwhile. Source: torch.autograd.profiler.profile, "_prepare_trace", through which all start.
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.probe.torch_calls.patches import Patches

OTHERS = "the program's own profiler was at work"


class StepProfiler:
    """Starts and stops on the thread of the training loop."""

    def __init__(self) -> None:
        self._patches = Patches()
        self._is_watching = self._is_starting = False
        self._own: Any = None
        self._mark: Any = None
        self.are_others = False  # whether the program profiles itself

    def watch_others(self) -> None:
        """Note from now on when the program sets up a profiler; does nothing until PyTorch is imported."""
        profile = getattr(sys.modules.get("torch.autograd.profiler"), "profile", None)
        if self._is_watching or profile is None:
            return
        self._is_watching = True
        if "_prepare_trace" in vars(profile):
            self._patches.set(profile, "_prepare_trace", self._noting(vars(profile)["_prepare_trace"]))

    def begin(self) -> None:
        """Start profiling. Raises: UnavailableError where that is not possible; anything that PyTorch raises."""
        if "torch" not in sys.modules:
            raise UnavailableError("this rank has not imported PyTorch")
        import torch  # noqa: PLC0415 - torch is the user's
        from torch.profiler import ProfilerActivity, profile  # noqa: PLC0415

        if self.are_others or torch._C._autograd._profiler_enabled():
            raise UnavailableError(OTHERS)
        activities = [ProfilerActivity.CPU]
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            activities.append(ProfilerActivity.CUDA)
        own = profile(activities=activities, record_shapes=True)
        self._is_starting = True
        try:
            own.start()
        finally:
            self._is_starting = False
        self._own = own

    def mark(self, step: int) -> None:
        """Mark what follows as this step, as the profiler's own `step` does."""
        from torch.profiler import record_function  # noqa: PLC0415 - it is imported by now

        self._end_mark()
        self._mark = record_function(f"ProfilerStep#{step}")
        self._mark.__enter__()

    def end(self, draft: Path) -> None:
        """Stop, and write the trace. Raises: UnavailableError if it had to give way; anything that PyTorch raises."""
        self._end_mark()
        own, self._own = self._own, None
        if own is None:
            raise UnavailableError(OTHERS)
        own.stop()
        own.export_chrome_trace(str(draft))

    def stop(self) -> None:
        """Stop without a trace, if it profiles."""
        own, self._own, self._mark = self._own, None, None
        if own is not None:
            with suppress(Exception):  # no error of ours may reach the program
                own.stop()

    def close(self) -> None:
        """Stop without a trace, and leave PyTorch as it was."""
        self.stop()
        self._patches.undo()

    def _end_mark(self) -> None:
        mark, self._mark = self._mark, None
        if mark is not None and self._own is not None:
            mark.__exit__(None, None, None)

    def _noting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def prepare(*arguments: Any, **named: Any) -> Any:
            if not self._is_starting:
                self.are_others = True
                self.stop()
            return original(*arguments, **named)

        return prepare
