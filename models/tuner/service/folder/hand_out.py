"""Handing out trials from a folder in which others hand out trials at the same time.

Trial n is begun only by who knows all trials before it, since its name is free only once. So no two are begun for the
same configuration and the budget is kept, though nobody locks anything: who was overtaken reads again and goes on.
"""

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.trial import ENDED, Configuration, Study, Trial, TrialRecord, TrialState
from crosswind.models.tuner.search.search_cache import KeptSearch
from crosswind.models.tuner.service import rules
from crosswind.models.tuner.service.folder.study_folder import StudyFolder
from crosswind.models.tuner.service.folder.turns import Turn
from crosswind.models.tuner.service.service import COUNT_MAX, FREE, HELD, DeadJobs, Lease, Limits

AHEAD_MAX = 16  # suggestions to choose from beside others who have the same ones


@dataclass
class HandOut:
    """One request for trials, as far as it has got."""

    folder: StudyFolder
    study: Study
    lease: Lease
    limits: Limits
    request: RequestKey | None
    records: list[TrialRecord] = field(default_factory=list, init=False)
    _is_over: bool = field(default=False, init=False)
    _overtaken: int = field(default=0, init=False)

    def recall(self) -> None:
        """Takes the trials that the same request got before. Raises: InvalidInputError when it was another one."""
        request = self.request
        if request is None:
            return
        before = [turn for turn in self.folder.turns() if turn.request and turn.request.key == request.key]
        if any(turn.request != request for turn in before):
            raise InvalidInputError(f"Idempotency-Key {request.key!r} was used for another request: choose a new one")
        self.records = [turn.record for turn in before]
        self._is_over = bool(before)

    def go_on(self, count: int, find_search: Callable[[], KeptSearch], dead_jobs: DeadJobs) -> bool:
        """Hands out until `count` are handed out or nothing is left; False when another writer came in between."""
        if self._is_over:
            return True
        if not self._again(self.folder.turns(), count, dead_jobs):
            return False
        missing = count - len(self.records)
        if missing == 0:
            return True
        turns, number = self.folder.look()  # anew: what was just handed out again must not look free to the tuner
        if any(turn.record.trial.state in FREE for turn in turns):
            return False  # given back just now: a tuner takes its configuration for one that nobody has
        allowed = rules.room(self.study, number, missing, self.limits.trials)
        return allowed == 0 or self._new(turns, number, allowed, find_search())

    def _again(self, turns: list[Turn], count: int, dead_jobs: DeadJobs) -> bool:
        """Hands out trials that were begun before."""
        by_id = {turn.record.trial.trial_id: turn for turn in turns}
        held = {turn.record.job for turn in turns if turn.record.trial.state in HELD and turn.record.job}
        mine = {record.trial.trial_id for record in self.records}
        others = [turn.record for turn in turns if turn.record.trial.trial_id not in mine]
        now_ns = self.folder.clock.now_ns(self.folder.path)
        for record in rules.to_hand_out(others, self.lease, now_ns, self._dead(held, dead_jobs)):
            if len(self.records) == count:
                return True
            if not self._hand(by_id[record.trial.trial_id]):
                return False
        return True

    def _hand(self, turn: Turn) -> bool:
        handed = rules.leased(turn.record, self.lease, 0, self.limits.losses)
        made = self.folder.make(self._leasing(turn.after(handed)))
        if made and made.record.trial.state not in ENDED:
            self.records.append(made.record)
        return made is not None

    def _new(self, turns: list[Turn], first: int, count: int, search: KeptSearch) -> bool:
        """Begins new trials from this number on."""
        configurations = self._suggested([turn.record for turn in turns], count, search)
        for number, configuration in enumerate(configurations, first):
            if not self._begin(number, configuration):
                self._overtaken += 1
                return False
        return True

    def _suggested(self, records: list[TrialRecord], count: int, search: KeptSearch) -> list[Configuration]:
        """Return what to try next; beside others who know the same, some of the next best, so that not all collide."""
        if not self._overtaken:
            return search.proposed(records, count)
        several = search.proposed(records, min(count + min(self._overtaken, AHEAD_MAX), COUNT_MAX))
        return random.sample(several, min(count, len(several)))

    def _begin(self, number: int, configuration: Configuration) -> bool:
        trial_id = f"{self.study.study_id}-{number:06d}"
        trial = Trial(dict(configuration), TrialState.LEASED, trial_id=trial_id)
        record = TrialRecord(trial, self.study.study_id, owner=self.lease.owner, job=self.lease.job)
        made = self.folder.make(self._leasing(Turn(number, 0, record)))
        if made:
            self.records.append(made.record)
        return made is not None

    def _leasing(self, turn: Turn) -> Turn:
        return replace(turn, lease_seconds=self.lease.seconds, request=self.request)

    @staticmethod
    def _dead(jobs: Collection[str], dead_jobs: DeadJobs) -> Collection[str]:
        return dead_jobs(jobs) if jobs else ()
