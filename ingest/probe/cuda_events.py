"""Events of CUDA and ROCm devices, by PyTorch. Source: torch.cuda.Event, torch.cuda.Stream."""

from typing import Any

from crosswind.data.schema.errors import InvalidInputError
from crosswind.ingest.probe.device_clock import DeviceClock
from crosswind.ingest.probe.timeline import Timeline


class CudaEvents:
    """Events of one device, reused."""

    def __init__(self, device: Any) -> None:
        import torch  # noqa: PLC0415 - torch is the user's

        self._cuda, self._device = torch.cuda, device
        self._aside = torch.cuda.Stream(device)
        self._free: list[Any] = []
        self._streams: dict[int, Any] = {}  # by the driver's handle: PyTorch makes an object at every call, in 9 us
        self._index = self._aside.device_index
        self._handle = getattr(torch._C, "_cuda_getCurrentRawStream", self._handle_of_object)

    def are_refused(self) -> bool:
        """Return whether a graph is being captured: an event would be part of it, and a query end the capture."""
        return bool(self._cuda.is_current_stream_capturing())

    def record(self) -> tuple[Any, int]:
        """Record an event in the calling thread's current stream. Return it and the stream's handle."""
        try:
            event = self._free.pop()
        except IndexError:
            event = self._cuda.Event(enable_timing=True)
        handle = self._handle(self._index)
        stream = self._streams.get(handle)
        if stream is None:
            stream = self._streams[handle] = self._cuda.current_stream(self._device)
        event.record(stream)
        return event, handle

    def _handle_of_object(self, _: int) -> int:
        return int(self._cuda.current_stream(self._device).cuda_stream)

    def record_aside(self) -> Any:
        """Record an event in a stream of its own."""
        event = self._cuda.Event(enable_timing=True)
        event.record(self._aside)
        return event

    def give_back(self, event: Any) -> None:
        """Take an event back for reuse."""
        self._free.append(event)


def follow(device: Any, timeline: Timeline) -> None:
    """Time steps by a tensor's device, unless that is the host or another device times them already.

    Waits once until the device has nothing else to do.
    Raises: InvalidInputError for a device without such events, UnavailableError when it does not answer.
    """
    if device.type == "cpu" or timeline.has_device:
        return
    if device.type != "cuda":
        raise InvalidInputError(f"watch: what is on {device.type!r} is not timed; expected cpu or cuda")
    import torch  # noqa: PLC0415 - torch is the user's

    torch.cuda.synchronize(device)
    timeline.use_device(DeviceClock(CudaEvents(device)), is_in_backward)


def is_in_backward() -> bool:
    """Return whether the calling thread computes gradients: those of a device have a thread of their own."""
    import torch  # noqa: PLC0415 - torch is the user's

    return bool(torch._C._current_graph_task_id() != -1)
