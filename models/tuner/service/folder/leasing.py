"""Leases of trials from a folder in which others lease trials at the same time.

Trial n is begun only by a process that has seen all trials before it, since its file name is free only once. So no two
are begun for the same configuration and the budget holds, though nobody locks anything: a process that was overtaken
reads again and goes on.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import ENDED, Configuration, Study, StudyState, TrialRecord
from crosswind.models.tuner.search.search_cache import CachedSearch
from crosswind.models.tuner.service import life, rules
from crosswind.models.tuner.service.folder.study_folder import StudyFolder
from crosswind.models.tuner.service.folder.turns import Turn
from crosswind.models.tuner.service.life import Begun
from crosswind.models.tuner.service.rules import SuggestRequest
from crosswind.models.tuner.service.service import COUNT_MAX, FREE, DeadJobs, Limits

AHEAD_MAX = 16  # further suggestions to choose from where others have the same ones


@dataclass
class Leasing:
    """One request for trials, and the `records` that it has got so far."""

    folder: StudyFolder
    study: Study
    request: SuggestRequest
    limits: Limits
    records: list[TrialRecord] = field(default_factory=list, init=False)
    is_answered: bool = field(default=False, init=False)
    _made: list[Turn] = field(default_factory=list, init=False)
    _overtaken: int = field(default=0, init=False)

    def repeat(self) -> None:
        """Take the trials that the same request got before. Raises: InvalidInputError when it was another one."""
        key = self.request.key
        if key is None:
            return
        before = [turn for turn in self.folder.turns() if turn.request and turn.request.key == key.key]
        if any(turn.request != key for turn in before):
            raise InvalidInputError(f"Idempotency-Key {key.key!r} was used for another request: choose a new one")
        self.records = [turn.record for turn in before]
        self.is_answered = bool(before)

    def advance(self, find_search: Callable[[], CachedSearch], dead_jobs: DeadJobs) -> bool:
        """Lease until the request is served or nothing is left; False when another writer came in between."""
        if not self._lease_available(self.folder.turns(), dead_jobs):
            return False
        missing = self.request.count - len(self.records)
        if missing == 0:
            return True
        turns, number = self.folder.look()  # again: a trial that was leased just now must not look free to the tuner
        if any(turn.record.trial.state in FREE for turn in turns):
            return False  # given back just now: the tuner would begin its configuration again
        uncharged = sum(not turn.record.charged for turn in turns)
        allowed = Begun(number, number - uncharged).remaining(self.study, missing, self.limits.trials)
        return allowed == 0 or self._begin_new(turns, number, allowed, find_search())

    def expect_running(self) -> None:
        """Give back what was leased where the study was paused or stopped meanwhile, as if nobody had asked for it.

        Raises: PausedError.
        """
        study = self.folder.study()
        if study.state is StudyState.RUNNING:
            return
        for turn in self._made:
            released = rules.released(turn.record, owner=None, checkpoint=None)
            self.folder.make(replace(turn.after(released), request=None))
        self.records = []
        life.hands_out(study, 0)

    def _lease_available(self, turns: list[Turn], dead_jobs: DeadJobs) -> bool:
        """Lease trials that were begun before."""
        by_id = {turn.record.trial_id: turn for turn in turns}
        mine = {record.trial_id for record in self.records}
        others = [turn.record for turn in turns if turn.record.trial_id not in mine]
        now_ns = self.folder.clock.now_ns(self.folder.path)
        dead = rules.jobs_that_died([turn.record for turn in turns], dead_jobs)
        for record in rules.available(others, replace(self.request, dead=dead), now_ns):
            if len(self.records) == self.request.count:
                return True
            if not self._lease(by_id[record.trial_id]):
                return False
        return True

    def _lease(self, turn: Turn) -> bool:
        leased = rules.leased(turn.record, self.request.lease, 0, self.limits.losses)
        return self._make(turn.after(leased))

    def _begin_new(self, turns: list[Turn], first: int, count: int, search: CachedSearch) -> bool:
        """Begin new trials from this number on."""
        configurations = self._configurations([turn.record for turn in turns], count, search)
        for number, configuration in enumerate(configurations, first):
            trial_id = f"{self.study.study_id}-{number:06d}"
            record = rules.begun(self.study.study_id, trial_id, configuration, lease=self.request.lease)
            if not self._make(Turn(number, 0, replace(record, weights=search.weights))):
                self._overtaken += 1
                return False
        self.folder.keep_sources(search.report)
        return True

    def _configurations(self, records: list[TrialRecord], count: int, search: CachedSearch) -> list[Configuration]:
        """Return what to try next; once overtaken, a random choice of the next best, so that not all collide."""
        if not self._overtaken:
            return search.suggest(records, count)
        several = search.suggest(records, min(count + min(self._overtaken, AHEAD_MAX), COUNT_MAX))
        return random.sample(several, min(count, len(several)))

    def _make(self, turn: Turn) -> bool:
        """Store a turn under the request's lease; False when another writer was faster."""
        made = self.folder.make(replace(turn, lease_seconds=self.request.lease.seconds, request=self.request.key))
        if made and made.record.trial.state not in ENDED:
            self.records.append(made.record)
            self._made.append(made)
        return made is not None
