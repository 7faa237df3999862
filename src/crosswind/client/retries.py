"""Tries of one request: how often and how long, and when another one may help."""

from dataclasses import dataclass, field

from crosswind.ingest.ship.backoff import Backoff
from crosswind.ingest.ship.call import Call
from crosswind.ingest.ship.client import Answer

TRIES = 4
FIRST_SECONDS = 0.2
AGAIN = frozenset({408, 429, 502, 503, 504})  # statuses after which the same request may succeed
IN_PROGRESS = "/problems/in-progress"  # the type of a 409: the first request under the same key is not done yet


@dataclass(frozen=True)
class NoAnswer:
    """A try that got no answer; `may_repeat`: the request can be sent again."""

    error: Exception
    may_repeat: bool


def is_for_later(answer: Answer) -> bool:
    """Return whether the same request may succeed later."""
    return answer.status in AGAIN or str(answer.said.get("type", "")).endswith(IN_PROGRESS)


@dataclass
class Tries:
    """The tries of a request; one that is not repeatable has several only until it is sent."""

    call: Call
    is_repeatable: bool
    number: int = 0
    _backoff: Backoff = field(default_factory=lambda: Backoff(first_seconds=FIRST_SECONDS))

    def another(self, outcome: Answer | NoAnswer) -> bool:
        """Return whether to try again after this outcome, once it has waited as the server asks and a little more."""
        self.number += 1
        if isinstance(outcome, NoAnswer):
            return outcome.may_repeat and self._pause(0.0)
        return is_for_later(outcome) and self.is_repeatable and self._pause(outcome.retry_after_seconds)

    def _pause(self, asked_seconds: float) -> bool:
        """Wait, unless that was the last try or the wait would outlast the call."""
        seconds = self._backoff.after_failure(asked_seconds)
        if self.number >= TRIES or self.call.seconds_used + seconds >= self.call.seconds:
            return False
        self.call.giving_up.pause(seconds)
        return True

    def __str__(self) -> str:
        """Return how often and how long it was tried."""
        return f"{self.number} {'tries' if self.number > 1 else 'try'} in {self.call.seconds_used:.1f} s"
