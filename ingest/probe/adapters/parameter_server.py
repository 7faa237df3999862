"""Parameter servers over torch.distributed.rpc: pass the RRef of the server, or the module itself."""

import sys
from typing import Any, Protocol

from crosswind.ingest.probe.adapters.kinds import is_kind
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.torch_calls import watch_calls
from crosswind.ingest.probe.torch_calls.patches import Patches
from crosswind.ingest.probe.torch_calls.rpc import watch_rpc


class Recorder(Protocol):
    """The recorder of `crosswind.run`."""

    def record(self, **values: float) -> None:
        """Record values of this step."""
        ...


class Staleness:
    """The number of updates that the server made between this worker's fetch and its own update, recorded by step.

    A server counts its updates, and sends the count with the parameters and after every update.
    """

    def __init__(self, run: Recorder) -> None:
        self._run = run
        self._fetched = 0

    def fetched(self, version: int) -> None:
        """Note that this worker now has the parameters after so many updates."""
        self._fetched = version

    def updated(self, version: int) -> None:
        """Note the version of the parameters that this worker's update was applied to."""
        self._run.record(staleness=version - self._fetched)


def matches(thing: Any) -> bool:
    """Return whether it is an RRef, or the module torch.distributed.rpc."""
    name = "torch.distributed.rpc"
    is_module = thing is sys.modules.get(name) and thing is not None
    return is_module or is_kind(thing, "torch.PyRRef")


def watch(thing: Any, timeline: Timeline) -> Any:
    """Report remote procedure calls, as operation `rpc`, in addition to collectives."""
    calls = watch_calls(timeline)
    if not calls.are_remote_seen:
        patches = Patches()
        timeline.on_close(patches.undo)
        watch_rpc(calls, patches)
        calls.are_remote_seen = True
    return thing
