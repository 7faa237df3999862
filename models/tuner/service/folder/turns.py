"""The turns of trials: one file for everything that happens to a trial, never changed once it is there.

`000017.0002.json` is what became of trial 17 with its third turn: the whole record, so that the newest turn alone tells
how the trial stands. Whoever wants to change a trial reads turn n, decides, and makes turn n + 1; of two who do so at
once, one finds the name taken and has to read again. So every trial has one history that all agree on. A lease holds
from the time stamp of its turn's file, which heartbeats renew.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.trial import Trial, TrialRecord, TrialState
from crosswind.models.tuner.service.service import NANOSECONDS

NAME = re.compile(r"(\d{6})\.(\d{4})\.json")


@dataclass(frozen=True)
class Turn:
    """A trial as it stands after one turn; `number` counts the study's trials, `generation` the trial's turns.

    `lease_seconds` is how long the lease holds from the file's time stamp, `request` which request made it.
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
        """The next turn of the same trial."""
        return replace(self, generation=self.generation + 1, record=record)

    def stamped(self, stamp_ns: int) -> "Turn":
        """The turn with its lease running from this time stamp."""
        if self.record.trial.state is not TrialState.LEASED:
            return self
        expires_ns = stamp_ns + round(self.lease_seconds * NANOSECONDS)
        return replace(self, record=replace(self.record, lease_expires_ns=expires_ns))


def file_name(number: int, generation: int) -> str:
    """The name of a turn's file."""
    return f"{number:06d}.{generation:04d}.json"


def place_of(name: str) -> tuple[int, int] | None:
    """Number and generation that a file's name tells; None for files of other kinds."""
    match = NAME.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


def written(turn: Turn) -> bytes:
    """The turn as one line of JSON."""
    fields = {**asdict(turn), "trial": asdict(turn.record.trial), "record": asdict(turn.record)}
    del fields["record"]["trial"], fields["record"]["lease_expires_ns"]
    return json.dumps(fields, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def read(content: bytes) -> Turn | None:
    """The turn that was written; None where the content is no turn, or only part of one."""
    if not content.endswith(b"\n"):
        return None
    try:
        fields: dict[str, Any] = json.loads(content)
        return _turn(fields)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _turn(fields: Mapping[str, Any]) -> Turn:
    trial = Trial(**{**fields["trial"], "state": TrialState(fields["trial"]["state"])})
    request = RequestKey(**fields["request"]) if fields["request"] else None
    record = TrialRecord(trial, **fields["record"])
    return Turn(int(fields["number"]), int(fields["generation"]), record, float(fields["lease_seconds"]), request)
