"""The reports of the watched calls to the timeline."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from crosswind.ingest.probe.device_clock import Mark
from crosswind.ingest.probe.step import Arrival
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.torch_calls.groups import Groups
from crosswind.ingest.probe.watch import Watch

Value = TypeVar("Value")


class Call(NamedTuple):
    """A collective under way."""

    arrival: Arrival
    size_bytes: int
    operation: str
    group: str
    blocked_since: int | None = None  # None: since the wait for it begins


class Calls(Watch):
    """The watch of all collectives launched from Python."""

    def __init__(self, timeline: Timeline) -> None:
        super().__init__(timeline)
        self.groups = Groups()
        self.are_remote_seen = False

    @property
    def are_reported(self) -> bool:
        """Return whether to report a collective that is launched now."""
        return self.is_on and self.timeline.is_in_step

    def arrive_with(self, tensors: Sequence[Any]) -> Arrival | None:
        """Note that this rank has come to a collective over these tensors; None if it is not reported."""
        if not tensors or tensors[0].is_cpu:
            return self.arrive()
        came = self.timeline.mark() if self.is_on and tensors[0].is_cuda else None
        return self.timeline.arrive(came=came) if came else None

    def report_end(self, call: Call, end: int | None, since: int | None) -> None:
        """Report the end, which may be unknown; the calling thread stood still for it since then."""
        self.ended(call.arrival, lambda: (call.size_bytes, call.operation, call.group), end, since)

    def wait_on_device(self, call: Call, wait: Callable[[], Value]) -> Value:
        """Do the wait, and return its value: the present queue waits in it, and the loop goes on."""
        since = self.timeline.mark()
        value = wait()
        self.end_on_device(call, call.arrival.came if call.blocked_since is not None else since)
        return value

    def end_on_device(self, call: Call, since: Mark | None) -> None:
        """Report that it ends at the present place of the queue, which stands still for it from `since`."""
        what = call.size_bytes, call.operation, call.group
        if went := self.timeline.mark():
            self.guarded(lambda: self.timeline.collective_on_device(call.arrival, what, went, since))


def tensors_in(argument: Any) -> Sequence[Any]:
    """Return the tensors of an argument that is one, a list of such, or a list of such lists."""
    if not isinstance(argument, (list, tuple)):
        return (argument,)
    if argument and isinstance(argument[0], (list, tuple)):
        return [tensor for part in argument for tensor in part]
    return argument


def bytes_of(tensors: Sequence[Any]) -> int:
    """Return their bytes; of sparse ones, as if they were dense."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
