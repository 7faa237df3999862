"""Failed attempts to get in, by where they come from: slowed down, limited, and logged once a minute at most."""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import Scope

from crosswind.api.peer import PEER, Peer

WINDOW_SECONDS = 60.0
FAILURES_MAX = 10  # within the window, from one address
TOKENS_MAX, TOKENS_FREE = 30, 5  # the same for tokens in header fields, and how many are not held back
PLACES_MAX = 2000
FIRST_DELAY_SECONDS, LAST_DELAY_SECONDS = 0.25, 2.0
log = logging.getLogger("crosswind.access")


def place_of(scope: Scope) -> str:
    """Return where a request comes from: its address, and the user of this machine where the kernel says so."""
    peer: Peer = scope.get("state", {}).get(PEER, Peer())
    address = "the Unix socket" if peer.is_unix else peer.address or "an unknown address"
    return address if peer.uid is None else f"{address}, uid {peer.uid}"


@dataclass
class _Window:
    began: float
    failures: int = 0


class Attempts:
    """Counts failed attempts by place: an address, and the user of this machine where the kernel says so.

    `clock` returns seconds; `noun` is what failed, as the log calls it. The first `free` failures are not held back.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        noun: str = "login",
        failures_max: int = FAILURES_MAX,
        free: int = 0,
    ) -> None:
        self._clock = clock
        self._noun = noun
        self._failures_max = failures_max
        self._free = free
        self._windows: OrderedDict[str, _Window] = OrderedDict()

    def wait_seconds(self, place: str) -> float:
        """Return how long this place has to wait before it may try again; 0 if it need not."""
        window = self._windows.get(place)
        if window is None or window.failures < self._failures_max:
            return 0.0
        return max(0.0, window.began + WINDOW_SECONDS - self._clock())

    def fail(self, place: str, reason: str) -> float:
        """Count a failure. Return for how many seconds its answer is to be held back."""
        window = self._window(place)
        window.failures += 1
        if window.failures == 1:
            log.warning("a %s from %s failed: %s", self._noun, place, reason)
        elif window.failures == self._failures_max:
            log.warning("%d %ss from %s failed within a minute: more are refused", window.failures, self._noun, place)
        doublings = window.failures - self._free - 1
        return 0.0 if doublings < 0 else float(min(LAST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2**doublings))

    def _window(self, place: str) -> _Window:
        now = self._clock()
        window = self._windows.get(place)
        if window is None or now - window.began >= WINDOW_SECONDS:
            window = self._windows[place] = _Window(now)
            self._windows.move_to_end(place)
            while len(self._windows) > PLACES_MAX:
                self._windows.popitem(last=False)
        return window
