"""Events of CUDA and ROCm devices, by PyTorch. Source: torch.cuda.Event, torch.cuda.Stream."""

from typing import Any

from crosswind.data.errors import InvalidInputError
from crosswind.ingest.probe.device_clock import DeviceClock


class CudaEvents:
    """Events of one device, used again and again."""

    def __init__(self, device: Any) -> None:
        import torch  # noqa: PLC0415 - torch is the user's

        self._cuda, self._device = torch.cuda, device
        self._aside = torch.cuda.Stream(device)
        self._free: list[Any] = []

    def record(self) -> tuple[Any, int] | None:
        """An event in the current stream, and which that is; None while a graph is captured: it would be in it."""
        if self._cuda.is_current_stream_capturing():
            return None
        event = self._free.pop() if self._free else self._cuda.Event(enable_timing=True)
        stream = self._cuda.current_stream(self._device)
        event.record(stream)
        return event, stream.cuda_stream

    def record_aside(self) -> Any:
        """An event in a stream of its own; None while a graph is captured."""
        if self._cuda.is_current_stream_capturing():
            return None
        event = self._cuda.Event(enable_timing=True)
        event.record(self._aside)
        return event

    def give_back(self, event: Any) -> None:
        """Takes it for another place."""
        self._free.append(event)


def clock_of(device: Any) -> DeviceClock | None:
    """The clock of a tensor's device; None for the host. Waits once until the device has nothing else to do.

    Raises: InvalidInputError for a device without such events, UnavailableError when it does not answer.
    """
    if device.type == "cpu":
        return None
    if device.type != "cuda":
        raise InvalidInputError(f"watch: what is on {device.type!r} is not timed; expected cpu or cuda")
    import torch  # noqa: PLC0415 - torch is the user's

    torch.cuda.synchronize(device)
    return DeviceClock(CudaEvents(device))
