"""The service over a folder that many nodes share: NFS, Lustre or a local disk; no server, no database, no locks.

Nobody waits for anybody: a writer that is killed or stalls holds up no other. See `files` for why two never get the
same name, `turns` for how a trial's history is kept, and `clock` for whose time counts.
"""

import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from crosswind.data.schema.errors import ConflictError, NotFoundError, UnavailableError
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.trial import Study, Trial, TrialRecord, TrialState
from crosswind.models.tuner.search.search import MakeTuner
from crosswind.models.tuner.search.search_cache import FindEarlier, SearchCache
from crosswind.models.tuner.service import rules
from crosswind.models.tuner.service.folder.clock import FileSystemClock, FolderClock
from crosswind.models.tuner.service.folder.hand_out import HandOut
from crosswind.models.tuner.service.folder.prior_studies import PriorStudies
from crosswind.models.tuner.service.folder.study_folder import STUDY_FILE, StudyFolder, folder_name
from crosswind.models.tuner.service.folder.turns import Turn
from crosswind.models.tuner.service.service import LIMITS, DeadJobs, Lease, Limits, StudyStatus, nobody

ATTEMPTS = 1_000  # to get a word in beside other writers; each time one of them got on
PAUSE_SECONDS = 0.02  # at most, before reading again what another writer did


class FolderStudyService:
    """The `StudyService` whose studies are folders below `root`; every process and node has its own.

    A study starts from the other studies below `root`, unless `find_earlier` says otherwise; `make_tuner` names another
    tuner, which starts from nothing and aims at one objective. Every method raises UnavailableError besides, where the
    folder cannot be reached or is full.
    """

    def __init__(  # noqa: PLR0913 - keywords
        self,
        root: Path,
        *,
        make_tuner: MakeTuner | None = None,
        find_earlier: FindEarlier | None = None,
        clock: FolderClock | None = None,
        limits: Limits = LIMITS,
        dead_jobs: DeadJobs = nobody,
    ) -> None:
        self._root = root
        self._clock = clock or FileSystemClock()
        self._searches = SearchCache.by(make_tuner, find_earlier or PriorStudies(root, self._clock))
        self._limits = limits
        self._dead_jobs = dead_jobs
        self._folders: dict[str, StudyFolder] = {}

    def create(self, study: Study, *, request: RequestKey | None = None) -> Study:
        """Stores a new study."""
        rules.check_study(study)
        folder = StudyFolder(self._root / folder_name(study.name), self._clock)
        if folder.create(study, request):
            return study
        stored, made_by = folder.study()
        if request is not None and made_by == request:
            return stored
        raise ConflictError(f"study name {study.name!r} is taken: choose another")

    def suggest(self, study: str, count: int, lease: Lease, *, request: RequestKey | None = None) -> list[TrialRecord]:
        """Up to `count` trials for the lease's owner."""
        rules.check_count(count)
        folder = self._folder(study)
        stored = folder.study()[0]
        now_ns = self._clock.now_ns(folder.path)
        folder.sweep(now_ns)
        hand_out = HandOut(folder, stored, lease, self._limits, request)
        hand_out.recall()
        if rules.is_over(stored, now_ns):
            return hand_out.records
        for _ in range(ATTEMPTS):
            if hand_out.go_on(count, lambda: self._searches.of(stored), self._dead_jobs):
                return hand_out.records
            time.sleep(random.SystemRandom().uniform(0, PAUSE_SECONDS))
        raise UnavailableError(f"{folder.path}: other writers were faster {ATTEMPTS} times, try again later")

    def heartbeat(self, study: str, trial_id: str, lease: Lease) -> TrialRecord:
        """Lets the lease run anew from now."""
        folder = self._folder(study)
        turn = self._turn(folder, trial_id)
        rules.beaten(turn.record, lease, 0)
        folder.renew(turn, lease.seconds)
        renewed = self._turn(folder, trial_id)
        rules.beaten(renewed.record, lease, 0)  # somebody may have got it just before
        return renewed.record

    def release(
        self, study: str, trial_id: str, *, owner: str | None = None, checkpoint: str | None = None
    ) -> TrialRecord:
        """Gives a trial back unmeasured."""
        return self._change(study, trial_id, lambda record: rules.released(record, owner=owner, checkpoint=checkpoint))

    def complete(  # noqa: PLR0913 - as the protocol has it
        self,
        study: str,
        trial_id: str,
        objective: float,
        *,
        owner: str | None = None,
        run_id: str | None = None,
        outcomes: Mapping[str, float] | None = None,
    ) -> TrialRecord:
        """Takes what was measured."""
        return self._change(
            study,
            trial_id,
            lambda record: rules.completed(record, objective, owner=owner, run_id=run_id, outcomes=outcomes),
        )

    def fail(
        self, study: str, trial_id: str, reason: str, *, state: TrialState = TrialState.FAILED, owner: str | None = None
    ) -> TrialRecord:
        """Ends a trial without an objective."""
        return self._change(study, trial_id, lambda record: rules.failed(record, reason, state=state, owner=owner))

    def trials(self, study: str) -> list[TrialRecord]:
        """The study's trials, oldest first."""
        return [turn.record for turn in self._folder(study).turns()]

    def trial(self, study: str, trial_id: str) -> TrialRecord:
        """One trial."""
        return self._turn(self._folder(study), trial_id).record

    def status(self, study: str) -> StudyStatus:
        """Return how far the study is."""
        folder = self._folder(study)
        return rules.status_of(folder.study()[0], self.trials(study), lambda: self._clock.now_ns(folder.path))

    def best(self, study: str) -> Trial | None:
        """The best complete trial so far."""
        record = self.status(study).best
        return record.trial if record else None

    def _folder(self, study: str) -> StudyFolder:
        if study not in self._folders:
            self._folders[study] = self._found(study)
        return self._folders[study]

    def _found(self, study: str) -> StudyFolder:
        """The folder of the study of this name or id."""
        named = StudyFolder(self._root / folder_name(study), self._clock)
        if (named.path / STUDY_FILE).exists():
            return named
        for path in sorted(self._root.glob(f"*/{STUDY_FILE}")):
            folder = StudyFolder(path.parent, self._clock)
            if folder.study()[0].study_id == study:
                return folder
        raise NotFoundError(f"study {study!r} is not in {self._root}")

    def _turn(self, folder: StudyFolder, trial_id: str) -> Turn:
        number = trial_id.rpartition("-")[2]
        turn = folder.turn(int(number)) if number.isascii() and number.isdigit() and len(number) < 10 else None
        if turn is None or turn.record.trial.trial_id != trial_id:
            raise NotFoundError(f"trial {trial_id!r} is not in study {folder.study()[0].name!r}")
        return turn

    def _change(self, study: str, trial_id: str, rule: Callable[[TrialRecord], TrialRecord]) -> TrialRecord:
        """Change the trial by the rule and return it as stored; decided anew where another writer changed it first."""
        folder = self._folder(study)
        for _ in range(ATTEMPTS):
            turn = self._turn(folder, trial_id)
            changed = rule(turn.record)
            if changed == turn.record:
                return turn.record
            made = folder.make(turn.after(changed))
            if made:
                return made.record
        raise UnavailableError(f"{folder.path}: other writers were faster {ATTEMPTS} times, try again later")
