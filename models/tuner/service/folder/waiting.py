"""Trials that wait for an owner, in a folder: a study's start, and what people add."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.trial import Configuration, Study, TrialRecord
from crosswind.models.tuner.service import life
from crosswind.models.tuner.service.folder.study_folder import StudyFolder
from crosswind.models.tuner.service.folder.turns import Turn


def begin_start(folder: StudyFolder, study: Study) -> None:
    """Make the trials of the study's start: its first numbers. The next who comes makes those that a killed one left.

    Raises: UnavailableError.
    """
    if not study.start:
        return
    for number in range(folder.look()[1], len(study.start)):
        folder.make(_waiting(study, number, study.start[number], None))


@dataclass
class Queue:
    """One request to add trials that wait for an owner."""

    study: Study
    configurations: Sequence[Configuration]
    request: RequestKey | None
    _mine: set[str] = field(default_factory=set, init=False)  # trials that were made before another writer came

    def advance(self, folder: StudyFolder) -> list[TrialRecord] | None:
        """Make what is missing and return the trials; None when another writer came in between.

        Raises: InvalidInputError, ConflictError, UnavailableError.
        """
        begin_start(folder, self.study)
        turns, number = folder.look()
        records = [turn.record for turn in turns]
        now_ns = folder.clock.now_ns(folder.path)
        places = life.queued(
            self.study, records, self.configurations, now_ns=now_ns, made=self._made(folder, turns) | self._mine
        )
        queue: list[TrialRecord] = []
        for waiting, configuration in zip(places, self.configurations, strict=True):
            place = waiting
            if place is None:
                made = folder.make(_waiting(self.study, number, configuration, self.request))
                if made is None:
                    return None
                number, place = number + 1, made.record
                self._mine.add(place.trial_id)
            queue.append(place)
        return queue

    def _made(self, folder: StudyFolder, turns: Sequence[Turn]) -> frozenset[str]:
        """Return the ids of the trials that the same request made. Raises: InvalidInputError when it was another."""
        key = self.request
        if key is None:
            return frozenset()
        firsts = [first for turn in turns if (first := folder.first_turn(turn.number)) and first.request]
        same = [first for first in firsts if first.request and first.request.key == key.key]
        if any(first.request != key for first in same):
            raise InvalidInputError(f"Idempotency-Key {key.key!r} was used for another request: choose a new one")
        return frozenset(first.record.trial_id for first in same)


def _waiting(study: Study, number: int, configuration: Configuration, request: RequestKey | None) -> Turn:
    record = life.waiting(study.study_id, f"{study.study_id}-{number:06d}", configuration)
    return Turn(number, 0, record, request=request)
