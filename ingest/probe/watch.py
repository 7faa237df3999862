"""The watch over other people's calls for the timeline; what goes wrong in it ends it, and never the training."""

import logging
import time
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final, TypeVar

from crosswind.ingest.probe.step import Arrival, What
from crosswind.ingest.probe.timeline import Timeline

AT_ONCE_NS: Final = 100_000  # by how much an end may be seen late
BLOCKED_NS: Final = 300_000  # what is done already is not waited for as long as this, on a busy machine either

Describe = Callable[[tuple[Any, ...], Mapping[str, Any]], What]  # of the arguments of a call
Value = TypeVar("Value")
logger = logging.getLogger("crosswind")


class Watch:
    """One watch of one run, on until something in it fails."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.is_on = True

    def arrive(self) -> Arrival | None:
        """This rank has come to a collective; None when it is not to be told."""
        return self.timeline.arrive() if self.is_on else None

    def ended(self, arrival: Arrival, what: Callable[[], What], end: int | None, since: int | None) -> None:
        """It ended then, or nobody knows when; the calling thread stood still for it since then, if it did."""
        self.guarded(lambda: self.timeline.collective_until(end, arrival, what(), since))

    def around(self, function: Callable[..., Any], what: Describe) -> Callable[..., Any]:
        """The function, whose calls are told: a rank comes when it calls, and is done when it gets the answer."""

        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            arrival = self.arrive()
            value = function(*arguments, **named)
            if arrival is not None:
                self.ended(arrival, lambda: what(arguments, named), time.perf_counter_ns(), arrival.time)
            return value

        return call

    def guarded(self, action: Callable[[], Value]) -> Value | None:
        """Return what the action gives; None when it fails, which ends the watch."""
        try:
            return action()
        except Exception as error:  # noqa: BLE001 - the user's training goes on whatever we get wrong
            self.give_up(error)
            return None

    def give_up(self, error: Exception) -> None:
        """Sees nothing from now on."""
        if self.is_on:
            logger.warning("crosswind does not see collectives any more: %s: %s", type(error).__name__, error)
        self.switch_off()

    def switch_off(self) -> None:
        """Wrappers that somebody else holds on to do nothing of their own from now on."""
        self.is_on = False


def seen_end(end: int, *, open_at: int, since: int) -> int | None:
    """The end of work that was under way at `open_at` and was asked for, or waited for, from `since`.

    None when it may have been done long before anybody asked.
    """
    return end if since - open_at <= AT_ONCE_NS else None


def waited_end(end: int, *, open_at: int, since: int) -> int | None:
    """The same of work that cannot be asked whether it is done: a wait that took its time did wait for it."""
    return end if end - since > BLOCKED_NS else seen_end(end, open_at=open_at, since=since)
