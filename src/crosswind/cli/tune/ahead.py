"""Trials leased beforehand, for when the desk cannot be reached: one file each in the spool.

Who wants one renames its file into a name of its own: renaming is atomic on NFS and Lustre too, and succeeds for one
alone. Source: rename(2); nfs(5).
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

from crosswind.data.errors import ProjectError, UnavailableError
from crosswind.data.run import new_ulid
from crosswind.data.trial import Study, Trial, TrialRecord, TrialState
from crosswind.models.tuner.desks import Lease

FOLDER = "tune-ahead"
Suggest: TypeAlias = Callable[[str, int, Lease], list[TrialRecord]]  # of a study, as a desk does
LEASE_SECONDS = 86_400.0  # after which the desk hands them to others


@dataclass(frozen=True)
class Kept:
    """A trial that was leased beforehand, and its study, which no desk can be asked for now."""

    study: Study
    record: TrialRecord


@dataclass(frozen=True)
class Ahead:
    """The trials that wait in a spool for those who cannot reach one desk; many processes and nodes may share them."""

    folder: Path
    place: tuple[str, str]
    count: int = 0

    @classmethod
    def below(cls, spool: Path, place: tuple[str, str], count: int) -> "Ahead":
        """Those of this spool, which keeps `count` of a study."""
        return cls(spool / FOLDER, place, count)

    def next_trial(self, suggest: Suggest, study: Study, lease: Lease) -> TrialRecord | None:
        """A trial of the desk's; a kept one where it does not answer or has no more; None where none is left at all.

        Raises: UnavailableError where no desk answers and none is kept.
        """
        try:
            handed_out = suggest(study.name, 1, lease)
        except UnavailableError:
            kept = self.take(study.name)
            if kept is None:
                raise
            return kept.record
        if handed_out:
            self._fill(suggest, study, lease.owner)
            return handed_out[0]
        kept = self.take(study.name)
        return kept.record if kept else None

    def take(self, study: str) -> Kept | None:
        """A kept trial that nobody else gets; None when they are used up or have run out."""
        for path, kept in self._waiting(study):
            mine = path.with_suffix(f".{new_ulid()}")
            try:
                path.rename(mine)
            except OSError:
                if not mine.exists():  # otherwise it was us, and the answer got lost on the way
                    continue
            mine.unlink(missing_ok=True)
            return kept
        return None

    def _fill(self, suggest: Suggest, study: Study, owner: str) -> None:
        """Leases what is missing; without its job, which would get them back whenever it asks."""
        if self.count == 0 or (missing := self.count - len(list(self._waiting(study.name)))) <= 0:
            return
        try:
            for record in suggest(study.name, missing, Lease(owner, LEASE_SECONDS, None)):
                self._keep(Kept(study, record))
        except (ProjectError, OSError) as error:
            sys.stderr.write(f"crosswind: nothing more is kept for later: {error}\n")

    def _keep(self, kept: Kept) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{new_ulid()}.json"
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps({"place": self.place, **asdict(kept)}), encoding="utf-8")
        draft.rename(path)

    def _waiting(self, study: str) -> Iterator[tuple[Path, Kept]]:
        """The files of this desk's study whose leases still hold; those that have run out go."""
        for path in sorted(self.folder.glob("*.json")):
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                is_ours, kept = tuple(content["place"]) == self.place, _kept(content)
            except (OSError, ValueError, KeyError, TypeError):  # somebody took it just now, or it is not ours
                continue
            if not is_ours or kept.study.name != study:
                continue
            if (kept.record.lease_expires_ns or 0) <= time.time_ns():
                path.unlink(missing_ok=True)
                continue
            yield path, kept


def _kept(content: dict[str, dict[str, object]]) -> Kept:
    record = dict(content["record"])
    trial = dict(record.pop("trial"))  # type: ignore[call-overload]
    made = Trial(**trial | {"state": TrialState(trial["state"])})
    return Kept(Study(**content["study"]), TrialRecord(made, **record))  # type: ignore[arg-type]
