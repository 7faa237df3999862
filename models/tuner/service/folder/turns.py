"""The turns of trials: one file for everything that happens to a trial, never changed once it is there.

`000017.0002.json` is trial 17 after its third turn: the whole record, so the newest turn alone gives the trial's state.
To change a trial, a process reads turn n, decides, and makes turn n + 1; of two that do so at once, one finds the name
taken and has to read again. So every trial has one history that all agree on. A lease holds from the time stamp of its
turn's file, which heartbeats renew.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.trial import TrialRecord, TrialState
from crosswind.models.tuner.service.service import NANOSECONDS

NAME = re.compile(r"(\d{6})\.(\d{4})\.json")


@dataclass(frozen=True)
class Turn:
    """A trial after one turn.

    Args:
        number: Place of the trial in its study, from 0.
        generation: Place of the turn in the trial's history, from 0.
        record: The trial.
        lease_seconds: How long the lease holds from the file's time stamp.
        request: The request that made the turn.
    """

    number: int
    generation: int
    record: TrialRecord
    lease_seconds: float = 0.0
    request: RequestKey | None = None

    @property
    def file_name(self) -> str:
        """The name of the file that holds it."""
        return file_name(self.number, self.generation)

    def after(self, record: TrialRecord) -> "Turn":
        """Return the next turn of the same trial."""
        return replace(self, generation=self.generation + 1, record=record)

    def stamped(self, stamp_ns: int) -> "Turn":
        """Return the turn with its lease running from this time stamp."""
        if self.record.trial.state is not TrialState.LEASED:
            return self
        expires_ns = stamp_ns + round(self.lease_seconds * NANOSECONDS)
        return replace(self, record=replace(self.record, lease_expires_ns=expires_ns))


def file_name(number: int, generation: int) -> str:
    """Return the name of a turn's file."""
    return f"{number:06d}.{generation:04d}.json"


def place_of(name: str) -> tuple[int, int] | None:
    """Return number and generation by a file's name; None for files of other kinds."""
    match = NAME.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


def written(turn: Turn) -> bytes:
    """Return the turn as one line of JSON."""
    record = turn.record.as_nested_json()
    trial = record.pop("trial")
    del record["lease_expires_ns"]
    fields = {
        "number": turn.number,
        "generation": turn.generation,
        "record": record,
        "lease_seconds": turn.lease_seconds,
        "request": asdict(turn.request) if turn.request else None,
        "trial": trial,
    }
    return json.dumps(fields, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def read(content: bytes) -> Turn | None:
    """Return the turn that was written; None where the content is no turn, or only part of one."""
    if not content.endswith(b"\n"):
        return None
    try:
        fields: dict[str, Any] = json.loads(content)
        return _turn(fields)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _turn(fields: Mapping[str, Any]) -> Turn:
    request = RequestKey(**fields["request"]) if fields["request"] else None
    record = TrialRecord.from_json({**fields["record"], "trial": fields["trial"]})
    return Turn(int(fields["number"]), int(fields["generation"]), record, float(fields["lease_seconds"]), request)
