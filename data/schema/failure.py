"""Failures of a run's processes: who failed, when, at which step and of what; kept among the run's tags."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

TAG = "failure."
CONSEQUENCES = re.compile(  # of a peer that is gone, in the words of gloo, NCCL, MPI and sockets
    r"connection (was )?(closed|reset|refused)|closed by (remote )?peer|broken pipe|socket closed|remote process exited"
    r"|ncclRemoteError|ncclSystemError|watchdog|timed out|timeout|heartbeat|DistNetworkError|DistStoreError|ABORT"
    r"|ProcessRaisedException|ProcessExitedException|ChildFailedError",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Failure:
    """The end of one process of a run, `rank` None for one that is no rank; `ended_ns` is UTC, 0 where unknown.

    `step` is the number of the step that it was in, 0 for the first one, None where it is unknown.
    """

    reason: str
    rank: int | None = None
    ended_ns: int = 0
    step: int | None = None
    node: str | None = None

    def tag(self) -> tuple[str, str]:
        """Return the name and text of the tag that keeps it."""
        name = "program" if self.rank is None else f"rank{self.rank}"
        return TAG + name, json.dumps({key: value for key, value in asdict(self).items() if value is not None})

    @property
    def is_consequence(self) -> bool:
        """Return whether its reason is that another process was gone, or late."""
        return CONSEQUENCES.search(self.reason) is not None


def failures_in(tags: Mapping[str, str]) -> list[Failure]:
    """Return the failures that a run's tags keep, the first one first; tags that are none are left out.

    A rank that only lost its peer comes after all others: clocks differ, and it may be noted first.
    """
    read = [_failure(text) for name, text in tags.items() if name.startswith(TAG)]
    failures = [failure for failure in read if failure is not None]
    return sorted(failures, key=lambda failure: (failure.is_consequence, failure.rank is None, failure.ended_ns))


def failure_words(failures: Sequence[Failure]) -> str:
    """Return what happened to the first of these failures, and to how many others, without a full stop."""
    first = failures[0]
    if first.rank is None:
        return f"the program failed: {first.reason}"
    node = f" on {first.node}" if first.node else ""
    moment = "" if first.step is None else f" in step {first.step}" if first.step else " before its first step ended"
    text = f"rank {first.rank}{node} failed{moment}: {first.reason}"
    others = len({failure.rank for failure in failures if failure.rank is not None}) - 1
    return f"{text} (the first of {others + 1} ranks)" if others else text


def _failure(text: str) -> Failure | None:
    try:
        value = json.loads(text)
        failure = Failure(**value)
    except (ValueError, TypeError):
        return None
    numbers = (failure.rank, failure.ended_ns, failure.step)
    is_valid = isinstance(failure.reason, str) and all(number is None or type(number) is int for number in numbers)
    return failure if is_valid and isinstance(failure.node, str | None) else None
