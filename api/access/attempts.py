"""Failed attempts to get in, by where they come from: slowed down, limited, and logged once a minute at most."""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

WINDOW_SECONDS = 60.0
FAILURES_MAX = 10  # within the window, from one address
PLACES_MAX = 2000
FIRST_DELAY_SECONDS, LAST_DELAY_SECONDS = 0.25, 2.0
log = logging.getLogger("crosswind.access")


@dataclass
class _Window:
    began: float
    failures: int = 0


class Attempts:
    """Counts failed attempts by place: an address, and the user of this machine where the kernel says so.

    `clock` returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows: OrderedDict[str, _Window] = OrderedDict()

    def wait_seconds(self, place: str) -> float:
        """Return how long this place has to wait before it may try again; 0 if it need not."""
        window = self._windows.get(place)
        if window is None or window.failures < FAILURES_MAX:
            return 0.0
        return max(0.0, window.began + WINDOW_SECONDS - self._clock())

    def fail(self, place: str, reason: str) -> float:
        """Count a failure. Return for how many seconds its answer is to be held back."""
        window = self._window(place)
        window.failures += 1
        if window.failures == 1:
            log.warning("a login from %s failed: %s", place, reason)
        elif window.failures == FAILURES_MAX:
            log.warning("%d logins from %s failed within a minute: more are refused", FAILURES_MAX, place)
        return float(min(LAST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2 ** (window.failures - 1)))

    def _window(self, place: str) -> _Window:
        now = self._clock()
        window = self._windows.get(place)
        if window is None or now - window.began >= WINDOW_SECONDS:
            window = self._windows[place] = _Window(now)
            self._windows.move_to_end(place)
            while len(self._windows) > PLACES_MAX:
                self._windows.popitem(last=False)
        return window
