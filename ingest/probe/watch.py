"""The watch over other packages' calls for the timeline; an error in it ends the watch, never the training."""

import logging
import time
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final, TypeVar

from crosswind.ingest.probe.step import Arrival, What
from crosswind.ingest.probe.timeline import Timeline

AT_ONCE_NS: Final = 100_000  # an end may be seen late by this
BLOCKED_NS: Final = 300_000  # a wait for work that is done already is shorter, even on a busy machine

Describe = Callable[[tuple[Any, ...], Mapping[str, Any]], What]  # of the arguments of a call
Value = TypeVar("Value")
logger = logging.getLogger("crosswind")


class Watch:
    """One watch of one run, on until something in it fails."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.is_on = True

    def arrive(self) -> Arrival | None:
        """Note that this rank has come to a collective; None if it is not reported."""
        return self.timeline.arrive() if self.is_on else None

    def ended(self, arrival: Arrival, what: Callable[[], What], end: int | None, since: int | None) -> None:
        """Note its end, which may be unknown; the calling thread stood still for it since then, if it did."""
        self.guarded(lambda: self.timeline.collective_until(end, arrival, what(), since))

    def around(self, function: Callable[..., Any], what: Describe) -> Callable[..., Any]:
        """Wrap a function whose calls are collectives: a rank arrives with the call, and is done with the result."""

        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            arrival = self.arrive()
            value = function(*arguments, **named)
            if arrival is not None:
                self.ended(arrival, lambda: what(arguments, named), time.perf_counter_ns(), arrival.time)
            return value

        return call

    def guarded(self, action: Callable[[], Value]) -> Value | None:
        """Return the action's value; None when it fails, which ends the watch."""
        try:
            return action()
        except Exception as error:  # noqa: BLE001 - no error of ours may stop the user's training
            self.give_up(error)
            return None

    def give_up(self, error: Exception) -> None:
        """End the watch after an error."""
        if self.is_on:
            logger.warning("crosswind stops watching collectives: %s: %s", type(error).__name__, error)
        self.switch_off()

    def switch_off(self) -> None:
        """End the watch: wrappers still held by others only pass on from now on."""
        self.is_on = False


def seen_end(end: int, *, open_at: int, since: int) -> int | None:
    """Return the end of work that was under way at `open_at` and was queried, or waited for, from `since`.

    None when it may have been done long before that.
    """
    return end if since - open_at <= AT_ONCE_NS else None


def waited_end(end: int, *, open_at: int, since: int) -> int | None:
    """Return the end of work that cannot be queried: only a wait that took some time did wait for it."""
    return end if end - since > BLOCKED_NS else seen_end(end, open_at=open_at, since=since)
