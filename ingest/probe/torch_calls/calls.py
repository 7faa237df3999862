"""What the watched calls tell the timeline."""

import logging
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from crosswind.ingest.probe.step import Arrival
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.torch_calls.groups import Groups

logger = logging.getLogger("crosswind")


class Call(NamedTuple):
    """A collective under way."""

    arrival: Arrival
    size_bytes: int
    operation: str
    group: str
    blocked_since: int | None = None  # None: since the wait for it begins


class Calls:
    """Where arrivals and ends are told; what goes wrong here ends the watch, never the training."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.groups = Groups()
        self.is_on = True
        self.are_remote_seen = False
        self._loop = threading.get_ident()

    @property
    def are_told(self) -> bool:
        """Whether a collective that is asked for now is to be told."""
        return self.is_on and self.timeline.is_in_step

    def arrive(self, tensors: Sequence[Any]) -> Arrival | None:
        """This rank has come to a collective over these; None when it is not to be told."""
        return None if tensors and not tensors[0].is_cpu else self.timeline.arrive()

    def ended(self, call: Call, blocked_since: int | None) -> None:
        """It ended now; the calling thread stood still for it since then."""
        try:
            self.timeline.collective(
                call.arrival,
                size_bytes=call.size_bytes,
                operation=call.operation,
                group=call.group,
                blocked_since=blocked_since if threading.get_ident() == self._loop else None,
            )
        except Exception as error:  # noqa: BLE001 - the user's training goes on whatever we get wrong
            self.give_up(error)

    def give_up(self, error: Exception) -> None:
        """Sees nothing from now on."""
        if self.is_on:
            logger.warning("crosswind does not see collectives any more: %s: %s", type(error).__name__, error)
        self.switch_off()

    def switch_off(self) -> None:
        """Wrappers that somebody else holds on to do nothing of their own from now on."""
        self.is_on = False


def tensors_in(argument: Any) -> Sequence[Any]:
    """The tensors of an argument that is one, a list of such, or a list of such lists."""
    if not isinstance(argument, (list, tuple)):
        return (argument,)
    if argument and isinstance(argument[0], (list, tuple)):
        return [tensor for part in argument for tensor in part]
    return argument


def bytes_of(tensors: Sequence[Any]) -> int:
    """Their bytes; of sparse ones, as if they were dense."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
