"""The verbs of a study service that change one trial, or a study's state, by a rule, wherever they are stored."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.trial import Configuration, Study, StudyState, Trial, TrialRecord, TrialState
from crosswind.models.tuner.service import life, rules
from crosswind.models.tuner.service.service import StudyStatus

Rule = Callable[[TrialRecord], TrialRecord]


class TrialChanges(ABC):
    """A part of `StudyService`; what inherits it says how a change is stored."""

    @abstractmethod
    def change(self, study: str, trial_id: str, rule: Rule) -> TrialRecord:
        """Change the trial by the rule, at once for all who see it, and return it as stored. Raises: NotFoundError."""

    @abstractmethod
    def change_state(self, study: str, state: StudyState, request: RequestKey | None) -> Study:
        """Change the study's state, at once for all who ask for trials, and return it. Raises: as `life.in_state`."""

    @abstractmethod
    def enqueue(
        self, study: str, configurations: Sequence[Configuration], *, request: RequestKey | None = None
    ) -> list[TrialRecord]:
        """Store trials that wait for an owner."""

    @abstractmethod
    def trial(self, study: str, trial_id: str) -> TrialRecord:
        """Return one trial."""

    @abstractmethod
    def status(self, study: str) -> StudyStatus:
        """Return how far the study is."""

    def pause(self, study: str, *, request: RequestKey | None = None) -> Study:
        """Hand out no trial until the study goes on."""
        return self.change_state(study, StudyState.PAUSED, request)

    def resume(self, study: str, *, request: RequestKey | None = None) -> Study:
        """Hand out trials again."""
        return self.change_state(study, StudyState.RUNNING, request)

    def stop(self, study: str, *, request: RequestKey | None = None) -> Study:
        """Hand out no more trials."""
        return self.change_state(study, StudyState.STOPPED, request)

    def release(
        self, study: str, trial_id: str, *, owner: str | None = None, checkpoint: str | None = None
    ) -> TrialRecord:
        """Give a trial back unmeasured."""
        return self.change(study, trial_id, lambda record: rules.released(record, owner=owner, checkpoint=checkpoint))

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
        """Store what was measured."""
        return self.change(
            study,
            trial_id,
            lambda record: rules.completed(record, objective, owner=owner, run_id=run_id, outcomes=outcomes),
        )

    def fail(  # noqa: PLR0913 - as the protocol has it
        self,
        study: str,
        trial_id: str,
        reason: str,
        *,
        state: TrialState = TrialState.FAILED,
        owner: str | None = None,
        charged: bool = True,
    ) -> TrialRecord:
        """End a trial without an objective."""
        return self.change(
            study,
            trial_id,
            lambda record: rules.failed(record, reason, state=state, owner=owner, charged=charged),
        )

    def retry(self, study: str, trial_id: str, *, request: RequestKey | None = None) -> TrialRecord:
        """Enqueue the configuration of a trial that ended without an objective."""
        configuration = life.expect_again(self.trial(study, trial_id))
        [record] = self.enqueue(study, [configuration], request=request)
        return record

    def best(self, study: str) -> Trial | None:
        """Return the best complete trial so far."""
        record = self.status(study).best
        return record.trial if record else None
