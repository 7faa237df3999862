"""Trials leased beforehand, for when the service cannot be reached: one file each in the spool.

Who wants one renames its file into a name of its own: renaming is atomic on NFS and Lustre too, and succeeds for one
alone. Source: rename(2); nfs(5).
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from crosswind.cli.verbs.tune.spooled import spool_text
from crosswind.data.schema.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    ProjectError,
    UnavailableError,
)
from crosswind.data.schema.run import new_ulid
from crosswind.data.schema.trial import Study, StudyState, TrialRecord
from crosswind.models.tuner.service.service import Lease, StudyService, Suggest

FOLDER = "tune-ahead"
LEASE_SECONDS = 86_400.0  # after which the service hands them to others
OLD_NS = round(LEASE_SECONDS / 2 * 1e9)  # left of a lease: given back, so that its trial's turn comes
SHORT_NS = 60 * 1_000_000_000  # left of a lease: too little to begin with


@dataclass(frozen=True)
class Kept:
    """A trial that was leased beforehand, and its study, which no service can be asked for now."""

    study: Study
    record: TrialRecord

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Return what `as_json` wrote."""
        return cls(Study.from_json(content["study"]), TrialRecord.from_json(content["record"]))

    def as_json(self) -> dict[str, object]:
        """Return study and trial as JSON values."""
        return {"study": self.study.as_json(), "record": self.record.as_nested_json()}


@dataclass(frozen=True)
class Prefetch:
    """Trials leased ahead into a spool, for when the service is out of reach; processes and nodes may share them."""

    folder: Path
    place: tuple[str, str]
    count: int = 0

    @classmethod
    def below(cls, spool: Path, place: tuple[str, str], count: int) -> "Prefetch":
        """Those of this spool, which keeps `count` of a study."""
        return cls(spool / FOLDER, place, count)

    def next_trial(self, service: StudyService, suggest: Suggest, study: Study, lease: Lease) -> TrialRecord | None:
        """A trial of the service's; a kept one where it does not answer or has no more; None where none is left at all.

        Of a study that was stopped, what is kept is given back.
        Raises: UnavailableError where no service answers and none is kept; PausedError.
        """
        try:
            self._give_back(service, study)
            handed_out = suggest(study.study_id, 1, lease)
            if not handed_out and any(self._waiting(study.study_id)):
                self._give_back(service, service.status(study.study_id).study)
        except UnavailableError:
            kept = self.take(study.study_id)
            if kept is None:
                raise
            return kept.record
        if handed_out:
            self._fill(service, suggest, study, lease.owner)
            return handed_out[0]
        kept = self.take(study.study_id)
        return kept.record if kept else None

    def take(self, study: str) -> Kept | None:
        """A kept trial that nobody else gets, of the study of this id or name; None where none is left to begin with.

        What is kept when the study's hours are over is not begun.
        """
        now_ns = time.time_ns()
        for path, kept in self._waiting(study):
            if not kept.study.is_over(now_ns) and _left_ns(kept, now_ns) > SHORT_NS and (mine := _taken(path)):
                mine.unlink(missing_ok=True)
                return kept
        return None

    def _give_back(self, service: StudyService, study: Study) -> None:
        """Trials kept for half their lease go back, to be the first that are handed out; all when the study has ended.

        Raises: UnavailableError; the trial stays kept then.
        """
        now_ns = time.time_ns()
        has_ended = study.state is StudyState.STOPPED or study.is_over(now_ns)
        for path, kept in self._waiting(study.study_id):
            if _left_ns(kept, now_ns) > OLD_NS and not has_ended:
                continue
            if mine := _taken(path):
                try:
                    _release(service, kept)
                except UnavailableError:
                    mine.rename(path)
                    raise
                mine.unlink(missing_ok=True)

    def _fill(self, service: StudyService, suggest: Suggest, study: Study, owner: str) -> None:
        """Leases what is missing; without its job, which would get them back whenever it asks.

        Those who fill at the same moment may keep more together. What goes wrong must not cost the trial in hand.
        """
        if self.count == 0 or (missing := self.count - len(list(self._waiting(study.study_id)))) <= 0:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)  # before anything is leased
            leased = [
                Kept(study, record) for record in suggest(study.study_id, missing, Lease(owner, LEASE_SECONDS, None))
            ]
            self._keep(service, leased)
        except (ProjectError, OSError) as error:
            sys.stderr.write(f"crosswind: nothing more is kept for later: {error}\n")

    def _keep(self, service: StudyService, leased: Sequence[Kept]) -> None:
        """Raises: OSError, and what is not kept then is given back; what a service raises for that."""
        for number, kept in enumerate(leased):
            try:
                spool_text(self.folder, json.dumps({"place": self.place, **kept.as_json()}))
            except OSError:
                for unkept in leased[number:]:
                    _release(service, unkept)
                raise

    def _waiting(self, study: str) -> Iterator[tuple[Path, Kept]]:
        """The files of this study, by id or name, whose leases still hold; those that have run out are removed."""
        for path in sorted(self.folder.glob("*.json")):
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                is_ours, kept = tuple(content["place"]) == self.place, Kept.from_json(content)
            except (OSError, ValueError, KeyError, TypeError, InvalidInputError):  # just taken, or not ours
                continue
            if not is_ours or study not in (kept.study.study_id, kept.study.name):
                continue
            if _left_ns(kept, time.time_ns()) <= 0:
                path.unlink(missing_ok=True)
                continue
            yield path, kept


def _taken(path: Path) -> Path | None:
    """The file under a name that is ours alone; None where somebody else was faster."""
    mine = path.with_suffix(f".{new_ulid()}")
    try:
        path.rename(mine)
    except OSError:
        if not mine.exists():  # otherwise it was us, and the answer got lost on the way
            return None
    return mine


def _release(service: StudyService, kept: Kept) -> None:
    """Gives a trial back, unless the service has it otherwise by now. Raises: UnavailableError."""
    with suppress(ConflictError, NotFoundError):
        service.release(kept.study.study_id, kept.record.trial_id, owner=kept.record.owner)


def _left_ns(kept: Kept, now_ns: int) -> int:
    return (kept.record.lease_expires_ns or 0) - now_ns
