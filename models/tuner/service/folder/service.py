"""The study service over a folder that many nodes share: NFS, Lustre or a local disk; no server, database or locks.

Nobody waits for anybody: a writer that is killed or stalls holds up no other. See `files` for why two never get the
same name, `turns` for a trial's history, and `clock` for whose time counts.
"""

import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from crosswind.data.schema.errors import ConflictError, MalformedError, NotFoundError, ProjectError, UnavailableError
from crosswind.data.schema.report import Report
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.trial import ENDED, Configuration, Study, StudyState, TrialRecord, TrialState
from crosswind.models.tuner.search.search import MakeTuner
from crosswind.models.tuner.search.search_cache import FindPriorStudies, SearchCache
from crosswind.models.tuner.service import life, rules
from crosswind.models.tuner.service.changes import Rule, TrialChanges
from crosswind.models.tuner.service.folder.clock import FileSystemClock, FolderClock
from crosswind.models.tuner.service.folder.leasing import Leasing
from crosswind.models.tuner.service.folder.prior_studies import FolderPriorStudies
from crosswind.models.tuner.service.folder.study_folder import StudyFolder, folder_name, study_folders
from crosswind.models.tuner.service.folder.turns import Turn
from crosswind.models.tuner.service.folder.waiting import Queue, begin_start
from crosswind.models.tuner.service.rules import SuggestRequest
from crosswind.models.tuner.service.service import LIMITS, DeadJobs, Lease, Limits, StudyStatus, no_dead_jobs
from crosswind.models.tuner.study.stop_rules import Peer, Progress, reason_to_stop

ATTEMPTS = 1_000  # to write between other writers; each time one of them got on
_Made = TypeVar("_Made")
_log = logging.getLogger("crosswind.tuner")
PAUSE_SECONDS = 0.02  # at most, before reading again what another writer did


class FolderStudyService(TrialChanges):
    """The `StudyService` whose studies are folders below `root`; every process and node has its own.

    Every method raises UnavailableError besides, where the folder cannot be reached or is full.

    Args:
        root: Holds a folder for each study.
        make_tuner: A tuner in place of the usual one; it gets no prior studies and aims at one objective.
        find_prior_studies: Looks up the sources of a study; by default the other studies below `root`.
        clock: The folder's clock.
        limits: Bounds of every study.
        dead_jobs: Looks up which batch jobs have ended.

    Example:
        >>> service = FolderStudyService(Path("/scratch/studies"))
        >>> [record] = service.suggest("threads", 1, Lease("alice", seconds=3600))
        >>> service.complete("threads", record.trial_id, objective=0.25, owner="alice")
    """

    def __init__(  # noqa: PLR0913 - keywords
        self,
        root: Path,
        *,
        make_tuner: MakeTuner | None = None,
        find_prior_studies: FindPriorStudies | None = None,
        clock: FolderClock | None = None,
        limits: Limits = LIMITS,
        dead_jobs: DeadJobs = no_dead_jobs,
    ) -> None:
        self._root = root
        self._clock = clock or FileSystemClock()
        find_prior_studies = find_prior_studies or FolderPriorStudies(root, self._clock)
        self._search_cache = SearchCache.of_tuner(make_tuner, find_prior_studies)
        self._limits = limits
        self._dead_jobs = dead_jobs
        self._folders: dict[str, StudyFolder] = {}
        self._ids: dict[str, str] = {}  # of the studies, by the names that they had: another process may rename them

    def create(self, study: Study, *, request: RequestKey | None = None) -> Study:
        """Store a new study."""
        rules.check_name(study.name)
        rules.check_study(study)
        if study.sources:
            rules.check_sources(study, self._studies())
        folder = StudyFolder(self._root / folder_name(study.name), self._clock)
        if folder.create(study, request):
            self._forget(study.name)
            begin_start(folder, study)
            folder.keep_sources(self._search_cache.report(study))
            return study
        made_by = folder.version(0)[1]
        if request is not None and made_by == request:
            return folder.study()
        raise ConflictError(f"study name {study.name!r} is taken: choose another")

    def extend(
        self, study: str, *, trials: int | None = None, hours: float | None = None, request: RequestKey | None = None
    ) -> Study:
        """Add to the budget."""

        def attempt(folder: StudyFolder) -> Study | None:
            return folder.change(lambda stored: _extended(folder, stored, trials, hours), request)

        return self._where_it_is(study, attempt)

    def change_state(self, study: str, state: StudyState, request: RequestKey | None) -> Study:
        """Change the study's state."""
        return self._where_it_is(
            study, lambda folder: folder.change(lambda stored: life.in_state(stored, state), request)
        )

    def rename(self, study: str, name: str, *, force: bool = False, request: RequestKey | None = None) -> Study:
        """Give the study another name: its folder moves first, under a name that only one study can have."""
        folder = self._folder(study)
        rules.check_name(name)
        if not force:
            self._expect_no_lease(folder)
        path = self._root / folder_name(name)
        if path != folder.path:
            if any(other.name == name for other in self._studies()):
                raise ConflictError(f"study name {name!r} is taken: choose another")
            folder = self._moved(folder, path, name)
        self._forget(study, name)
        return next(
            filter(None, (folder.change(lambda stored: replace(stored, name=name), request) for _ in _attempts(folder)))
        )

    def delete(self, study: str, *, force: bool = False, request: RequestKey | None = None) -> None:  # noqa: ARG002
        """Remove the study with its trials."""
        folder = self._folder(study)
        if not force:
            self._expect_no_lease(folder)
        folder.remove()
        self._forget(study)

    def enqueue(
        self, study: str, configurations: Sequence[Configuration], *, request: RequestKey | None = None
    ) -> list[TrialRecord]:
        """Store trials that wait for an owner."""
        queue = Queue(self._where_it_is(study, StudyFolder.study), configurations, request)
        return self._where_it_is(study, queue.advance)

    def studies(self) -> list[StudyStatus]:
        """Return how far every study is, the newest first; one that cannot be read is left out, as the log says."""
        readable = list(filter(None, map(self._status_of, study_folders(self._root, self._clock))))
        return sorted(readable, key=lambda status: status.study.created_ns, reverse=True)

    def suggest(self, study: str, count: int, lease: Lease, *, request: RequestKey | None = None) -> list[TrialRecord]:
        """Return up to `count` trials for the lease's owner."""
        wanted = SuggestRequest(count, lease, request)
        folder = self._folder(study)
        stored = folder.study()
        now_ns = self._clock.now_ns(folder.path)
        folder.sweep(now_ns)
        begin_start(folder, stored)
        leasing = Leasing(folder, stored, wanted, self._limits)
        leasing.repeat()
        if leasing.is_answered or not life.hands_out(stored, now_ns):
            return leasing.records
        for _ in _attempts(folder):
            if leasing.advance(lambda: self._search_cache.get(stored), self._dead_jobs):
                break
            time.sleep(random.SystemRandom().uniform(0, PAUSE_SECONDS))
        leasing.expect_running()
        return leasing.records

    def heartbeat(self, study: str, trial_id: str, lease: Lease) -> TrialRecord:
        """Renew the lease from now."""
        folder = self._folder(study)
        turn = self._turn(folder, trial_id)
        rules.renewed(turn.record, lease, 0)
        folder.renew(turn, lease.seconds)
        renewed = self._turn(folder, trial_id)
        rules.renewed(renewed.record, lease, 0)  # somebody may have got it just before
        return renewed.record

    def define(
        self,
        study: str,
        trial_id: str,
        configuration: Configuration,
        parameters: Mapping[str, Mapping[str, object]],
        *,
        owner: str | None = None,
    ) -> TrialRecord:
        """Store the values that a trial's program asked for, and their parameters."""
        folder = self._folder(study)
        larger = rules.grown(folder.study(), parameters)
        rules.defined(self._turn(folder, trial_id).record, larger, configuration, owner=owner)
        folder.add_parameters(parameters)
        larger = rules.grown(folder.study(), parameters)  # somebody may have added one of them with other values
        return self.change(study, trial_id, lambda record: rules.defined(record, larger, configuration, owner=owner))

    def report(self, study: str, trial_id: str, reports: Sequence[Report], *, owner: str | None = None) -> str:
        """Store intermediate values; return in words why the trial should stop."""
        return self._where_it_is(study, lambda folder: self._report(folder, trial_id, reports, owner))

    def _report(self, folder: StudyFolder, trial_id: str, reports: Sequence[Report], owner: str | None) -> str:
        stored, turn = folder.study(), self._turn(folder, trial_id)
        before = folder.reports.of_trials([turn.number], lambda _: False)[turn.number]
        rules.check_reports(turn.record, reports, len(before), owner=owner)
        folder.reports.add(turn, reports)
        steps = folder.reports.of_trials([turn.number], lambda _: False)[turn.number]
        progress = Progress.of(stored, trial_id, steps, reports)
        return reason_to_stop(stored.stop_early, progress, lambda step: _peers(folder, trial_id, step))

    def reports(self, study: str) -> dict[str, list[Report]]:
        """Return what each trial has reported."""
        return {turn.record.trial_id: reports for turn, reports in _reported(self._folder(study)) if reports}

    def trials(self, study: str) -> list[TrialRecord]:
        """Return the study's trials, oldest first."""
        return [turn.record for turn in self._folder(study).turns()]

    def trial(self, study: str, trial_id: str) -> TrialRecord:
        """Return one trial."""
        return self._turn(self._folder(study), trial_id).record

    def status(self, study: str) -> StudyStatus:
        """Return how far the study is."""
        folder = self._folder(study)
        return self._status(folder)

    def change(self, study: str, trial_id: str, rule: Rule) -> TrialRecord:
        """Change the trial by the rule and return it as stored; decide again where another writer changed it first."""
        return self._where_it_is(study, lambda folder: self._attempt(folder, trial_id, rule)).record

    def _where_it_is(self, study: str, attempt: Callable[[StudyFolder], _Made | None]) -> _Made:
        """Return what an attempt in the study's folder makes; again where it makes None as another writer was faster.

        And again where another process renamed the study meanwhile. Raises: what the attempt raises.
        """
        attempts = (self._tried(study, attempt) for _ in _attempts(self._folder(study)))
        return next(made for made in attempts if made is not None)

    def _tried(self, study: str, attempt: Callable[[StudyFolder], _Made | None]) -> _Made | None:
        folder = self._folder(study)
        try:
            return attempt(folder)
        except (NotFoundError, UnavailableError):
            if folder.is_there():
                raise
            return None  # another process renamed the study just now

    def _studies(self) -> Iterator[Study]:
        """Return the studies below the root that can be read."""
        for folder in study_folders(self._root, self._clock):
            with suppress(MalformedError, NotFoundError):
                yield folder.study()

    def _folder(self, study: str) -> StudyFolder:
        """Return the folder of the study of this name or id, or of the name that this process knew it by."""
        cached = self._folders.get(study)
        if cached and cached.is_there():
            return cached
        before = self._ids.get(study)
        folder = (before and self._on_disk(before)) or self._on_disk(study)
        if folder is None:
            raise NotFoundError(f"study {study!r} is not in {self._root}")
        self._folders[study], self._ids[study] = folder, folder.study().study_id
        return folder

    def _on_disk(self, study: str) -> StudyFolder | None:
        named = StudyFolder(self._root / folder_name(study), self._clock)
        if named.is_there():
            return named
        for folder in study_folders(self._root, self._clock):
            with suppress(MalformedError, NotFoundError):  # of another study, for all that its name says
                stored = folder.study()
                if study in (stored.study_id, stored.name) and folder.is_there():
                    return folder
        return None

    def _forget(self, *studies: str) -> None:
        for study in studies:
            self._folders.pop(study, None)
            self._ids.pop(study, None)

    def _moved(self, folder: StudyFolder, path: Path, name: str) -> StudyFolder:
        """Move a study's folder. Raises: ConflictError where another study is there by now, UnavailableError."""
        try:
            folder.path.rename(path)  # takes the place of an empty folder, but of no other
        except OSError as error:
            if path.exists():
                raise ConflictError(f"study name {name!r} is taken: choose another") from error
            raise UnavailableError(f"{folder.path}: {error.strerror or error}") from error
        return StudyFolder(path, self._clock)

    def _expect_no_lease(self, folder: StudyFolder) -> None:
        records = [turn.record for turn in folder.turns()]
        life.expect_no_lease(folder.study(), records, self._clock.now_ns(folder.path))

    def _status(self, folder: StudyFolder, *, looks_ahead: bool = True) -> StudyStatus:
        records, now = [turn.record for turn in folder.turns()], lambda: self._clock.now_ns(folder.path)
        return rules.status_of(folder.study(), records, now, folder.sources(), looks_ahead=looks_ahead)

    def _status_of(self, folder: StudyFolder) -> StudyStatus | None:
        try:
            return self._status(folder, looks_ahead=False)
        except ProjectError as error:
            _log.warning("study in %s is not listed: %s", folder.path, error)
            return None

    def _turn(self, folder: StudyFolder, trial_id: str) -> Turn:
        number = trial_id.rpartition("-")[2]
        turn = folder.turn(int(number)) if number.isascii() and number.isdigit() and len(number) < 10 else None
        if turn is None or turn.record.trial_id != trial_id:
            raise NotFoundError(f"trial {trial_id!r} is not in study {folder.study().name!r}")
        return turn

    def _attempt(self, folder: StudyFolder, trial_id: str, rule: Rule) -> Turn | None:
        """Return the changed turn as stored; None where another writer was faster."""
        turn = self._turn(folder, trial_id)
        changed = rule(turn.record)
        return turn if changed == turn.record else folder.make(turn.after(changed))


def _reported(folder: StudyFolder) -> list[tuple[Turn, list[Report]]]:
    """Return every trial and what it has reported."""
    turns = {turn.number: turn for turn in folder.turns()}
    reports = folder.reports.of_trials(list(turns), lambda number: turns[number].record.trial.state in ENDED)
    return [(turn, reports[number]) for number, turn in turns.items()]


def _peers(folder: StudyFolder, trial_id: str, step: int) -> list[Peer]:
    return [
        Peer(turn.record.trial_id, report.value, turn.record.trial.state is TrialState.DONE)
        for turn, reports in _reported(folder)
        for report in reports
        if report.step == step and turn.record.trial_id != trial_id
    ]


def _extended(folder: StudyFolder, study: Study, trials: int | None, hours: float | None) -> Study:
    changed = life.extended(study, trials=trials, hours=hours, now_ns=folder.clock.now_ns(folder.path))
    rules.check_study(changed)
    return changed


def _attempts(folder: StudyFolder) -> Iterator[int]:
    """Count attempts to write between others. Raises: UnavailableError once there were too many."""
    yield from range(ATTEMPTS)
    raise UnavailableError(f"{folder.path}: other writers were faster {ATTEMPTS} times, try again later")
