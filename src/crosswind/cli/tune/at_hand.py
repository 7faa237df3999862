"""Desks in this process: over the store here, or over a shared folder."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from crosswind.cli.tune.told import Holder, Overview, Told
from crosswind.cli.tune.where import MakeTuner
from crosswind.data.trial import Study, TrialRecord, TrialState
from crosswind.ingest.ended_jobs import ended_jobs
from crosswind.models.tuner.desks import Desk, Lease
from crosswind.settings import Settings

FIELDS = ("study_id", "owner", "lease_expires_ns", "run_id", "reason", "job", "checkpoint", "outcomes")


@contextmanager
def store_desk(settings: Settings, make_tuner: MakeTuner | None = None) -> Iterator["DeskAtHand"]:
    """The desk over the store of this installation; new trials come from the usual tuner where none is named."""
    from crosswind.data.store import Store  # noqa: PLC0415 - not for a folder
    from crosswind.models.tuner.desk import StudyDesk  # noqa: PLC0415
    from crosswind.models.tuner.evidence.for_study import StoredEarlier  # noqa: PLC0415

    with Store.open(settings.home, database=settings.database) as store:
        earlier = StoredEarlier(store)
        yield DeskAtHand(StudyDesk(store.catalog, make_tuner=make_tuner, find_earlier=earlier, dead_jobs=ended_jobs))


@contextmanager
def folder_desk(folder: Path, make_tuner: MakeTuner | None = None) -> Iterator["DeskAtHand"]:
    """The desk over a shared folder, the same."""
    from crosswind.models.tuner.shared_folder import FolderDesk  # noqa: PLC0415 - not for the store

    yield DeskAtHand(FolderDesk(folder, make_tuner=make_tuner, dead_jobs=ended_jobs))


class DeskAtHand:
    """A desk of this process, as the job script's face asks it."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def create(self, study: Study) -> Study:
        """Stores a new study."""
        return self._desk.create(study)

    def suggest(self, study: str, count: int, holder: Holder) -> list[Told]:
        """Up to `count` trials."""
        return [told_of(record) for record in self._desk.suggest(study, count, _lease(holder))]

    def heartbeat(self, study: str, trial_id: str, holder: Holder) -> Told:
        """Lets the lease run anew from now."""
        return told_of(self._desk.heartbeat(study, trial_id, _lease(holder)))

    def release(self, study: str, trial_id: str, *, owner: str | None = None, checkpoint: str | None = None) -> Told:
        """Gives a trial back unmeasured."""
        return told_of(self._desk.release(study, trial_id, owner=owner, checkpoint=checkpoint))

    def complete(  # noqa: PLR0913 - as every desk has it
        self,
        study: str,
        trial_id: str,
        objective: float,
        *,
        owner: str | None = None,
        run_id: str | None = None,
        outcomes: Mapping[str, float] | None = None,
    ) -> Told:
        """Takes what was measured."""
        told = self._desk.complete(study, trial_id, objective, owner=owner, run_id=run_id, outcomes=outcomes)
        return told_of(told)

    def fail(
        self, study: str, trial_id: str, reason: str, *, state: TrialState = TrialState.FAILED, owner: str | None = None
    ) -> Told:
        """Ends a trial without an objective."""
        return told_of(self._desk.fail(study, trial_id, reason, state=state, owner=owner))

    def trial(self, study: str, trial_id: str) -> Told:
        """One trial."""
        return told_of(self._desk.trial(study, trial_id))

    def trials(self, study: str) -> list[Told]:
        """The study's trials, oldest first."""
        return [told_of(record) for record in self._desk.trials(study)]

    def standing(self, study: str) -> Overview:
        """How far the study is."""
        standing = self._desk.standing(study)
        return Overview(standing.study, standing.counts, told_of(standing.best) if standing.best else None)


def told_of(record: TrialRecord) -> Told:
    """A desk's record in the words of every desk."""
    return Told(record.trial, **{name: getattr(record, name) for name in FIELDS})


def _lease(holder: Holder) -> Lease:
    return Lease(holder.owner, holder.seconds, holder.job)
