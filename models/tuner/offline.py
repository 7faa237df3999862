"""Going on with a study while its desk cannot be reached: trials leased beforehand, and a journal of what to tell.

A batch of trials is leased while the desk answers, and lies in a spool folder, one file a trial. Who wants one renames
its file into a name of its own: renaming is atomic on NFS and Lustre, too, and succeeds for one alone. What became of a
trial is appended to a journal that this writer alone writes, a line each, and brought to disk. Later everything in the
journals is told to the desk, which takes the same tell again and changes nothing.
Source: rename(2); nfs(5).
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from crosswind.data.errors import ConflictError, InvalidInputError, NotFoundError
from crosswind.data.run import new_ulid
from crosswind.data.trial import Trial, TrialRecord, TrialState
from crosswind.models.tuner.desks import Desk, Lease
from crosswind.models.tuner.shared_folder.files import reaching, write_new

BATCH, TAKEN, JOURNALS = "batch", "taken", "journals"
JOURNAL_SUFFIX, DELIVERED_SUFFIX = ".jsonl", ".delivered"


@dataclass(frozen=True)
class Tell:
    """What became of a trial: done with an objective, ended otherwise for a reason, or given back (released)."""

    study: str
    trial_id: str
    owner: str
    state: TrialState
    objective: float | None = None
    outcomes: Mapping[str, float] = field(default_factory=dict)
    run_id: str | None = None
    reason: str = ""
    checkpoint: str | None = None

    def to(self, desk: Desk) -> None:
        """Tells a desk. Raises: what the desk raises."""
        if self.state is TrialState.RELEASED:
            desk.release(self.study, self.trial_id, owner=self.owner, checkpoint=self.checkpoint)
        elif self.objective is not None:
            desk.complete(
                self.study,
                self.trial_id,
                self.objective,
                owner=self.owner,
                run_id=self.run_id,
                outcomes=self.outcomes or None,
            )
        else:
            desk.fail(self.study, self.trial_id, self.reason, state=self.state, owner=self.owner)


@dataclass(frozen=True)
class Refusal:
    """A tell that the desk did not take, and why: somebody else has the trial by now, say."""

    tell: Tell
    reason: str


class Spool:
    """The folder of one study's batch and journals; many processes and nodes may share it."""

    def __init__(self, folder: Path, study: str) -> None:
        self._folder = folder
        self._study = study
        self._journal = folder / JOURNALS / f"{new_ulid()}{JOURNAL_SUFFIX}"

    def lease_ahead(self, desk: Desk, count: int, lease: Lease) -> int:
        """Leases trials while the desk can be reached; how many it gave. Raises: what the desk raises."""
        records = desk.suggest(self._study, count, lease)
        (self._folder / BATCH).mkdir(parents=True, exist_ok=True)
        for record in records:
            path = self._folder / BATCH / f"{record.trial.trial_id}.json"
            draft = path.with_suffix(f".{new_ulid()}")
            with reaching(draft):
                write_new(draft, json.dumps(asdict(record)).encode())
                draft.replace(path)
        return len(records)

    def take(self) -> TrialRecord | None:
        """A trial of the batch that nobody else gets, None when it is used up. Raises: UnavailableError."""
        (self._folder / TAKEN).mkdir(parents=True, exist_ok=True)
        for path in sorted((self._folder / BATCH).glob("*.json")):
            mine = self._folder / TAKEN / f"{path.stem}.{new_ulid()}.json"
            with reaching(path):
                try:
                    path.rename(mine)
                except FileNotFoundError:
                    if not mine.exists():  # otherwise it was us, and the answer got lost on the way
                        continue
                return _record(json.loads(mine.read_bytes()))
        return None

    def note(self, tell: Tell) -> None:
        """Keeps what became of a trial until the desk can be told. Raises: UnavailableError when the disk is full."""
        line = json.dumps(asdict(tell), allow_nan=False).encode() + b"\n"
        with reaching(self._journal):
            self._journal.parent.mkdir(parents=True, exist_ok=True)
            size = self._journal.stat().st_size if self._journal.exists() else 0
            descriptor = os.open(self._journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            try:
                _append(descriptor, line, size)
            finally:
                os.close(descriptor)

    def deliver(self, desk: Desk) -> list[Refusal]:
        """Tells everything that is not told yet, of every writer; what the desk refused, and why.

        Raises: UnavailableError when the desk still does not answer; what was told until then is not told again.
        """
        refusals = []
        for journal in sorted((self._folder / JOURNALS).glob(f"*{JOURNAL_SUFFIX}")):
            for tell in _untold(journal):
                try:
                    tell.to(desk)
                except (ConflictError, NotFoundError, InvalidInputError) as error:
                    refusals.append(Refusal(tell, str(error)))
                _count_one(journal)
        return refusals


def _append(descriptor: int, line: bytes, size: int) -> None:
    """The whole line at the journal's end, on disk, or none of it where the disk is full."""
    try:
        written = 0
        while written < len(line):
            written += os.write(descriptor, line[written:])
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def _untold(journal: Path) -> Iterator[Tell]:
    """The tells after those that were delivered; a last line that is not complete is not there yet."""
    lines = journal.read_bytes().split(b"\n")[:-1]
    for line in lines[_delivered(journal) :]:
        fields: dict[str, Any] = json.loads(line)
        yield Tell(**{**fields, "state": TrialState(fields["state"])})


def _delivered(journal: Path) -> int:
    """How many lines were told; too few after a crash in between, which the desk does not mind."""
    try:
        return int(journal.with_suffix(DELIVERED_SUFFIX).read_text())
    except (FileNotFoundError, ValueError):
        return 0


def _count_one(journal: Path) -> None:
    count, draft = _delivered(journal) + 1, journal.with_suffix(f".{new_ulid()}")
    with reaching(draft):
        write_new(draft, str(count).encode())
        draft.replace(journal.with_suffix(DELIVERED_SUFFIX))


def _record(fields: dict[str, Any]) -> TrialRecord:
    trial = fields.pop("trial")
    return TrialRecord(Trial(**{**trial, "state": TrialState(trial["state"])}), **fields)
