"""Promises of every service about intermediate values; a class that inherits them runs them for a service."""

from dataclasses import replace

import pytest
from tests.models.tuner.service.service_contract import ALICE, BOB, NAME, STUDY, Clock

from crosswind.data.schema.errors import ConflictError, InvalidInputError, NotFoundError
from crosswind.data.schema.report import BATCH_MAX, Report
from crosswind.data.schema.trial import TrialState
from crosswind.models.tuner.service.service import StudyService


class ReportsContract:
    """The promises; a class that inherits them has fixtures `service`, which holds STUDY, and `clock`."""

    def test_reports_come_back_in_the_order_of_steps_and_the_last_of_a_step_counts(self, service: StudyService) -> None:
        first, second = service.suggest(NAME, 2, ALICE)
        assert service.reports(NAME) == {}
        assert service.report(NAME, first.trial_id, [Report(2, 0.5), Report(0, 0.9)], owner="alice") == ""
        assert service.report(NAME, second.trial_id, [Report(7, -1.0)]) == ""
        assert service.report(NAME, first.trial_id, [Report(2, 0.4), Report(3, 0.3)]) == ""
        assert service.reports("s1") == {
            first.trial_id: [Report(0, 0.9), Report(2, 0.4), Report(3, 0.3)],
            second.trial_id: [Report(7, -1.0)],
        }

    def test_a_trial_behind_the_median_of_complete_ones_should_stop(self, service: StudyService) -> None:
        for value in (1.0, 2.0, 3.0, 4.0, 5.0):
            [record] = service.suggest(NAME, 1, ALICE)
            assert service.report(NAME, record.trial_id, [Report(1, value)]) == ""
            service.complete(NAME, record.trial_id, value)
        good, bad = service.suggest(NAME, 2, ALICE)
        assert service.report(NAME, good.trial_id, [Report(1, 3.0)]) == ""
        reason = service.report(NAME, bad.trial_id, [Report(1, 3.5)])
        assert reason == "at step 1 the best value so far, 3.5, is behind 3, the median of 5 trials"
        service.fail(NAME, bad.trial_id, reason, state=TrialState.PRUNED)
        assert service.reports(NAME)[bad.trial_id] == [Report(1, 3.5)]

    def test_a_study_may_have_another_rule_or_none(self, service: StudyService) -> None:
        for name, is_stopped in (("asha", True), ("none", False)):
            service.create(replace(STUDY, study_id=name, name=name, stop_early=name))
            assert service.status(name).study.stop_early == name
            for value in (1.0, 2.0):
                [record] = service.suggest(name, 1, ALICE)
                reason = service.report(name, record.trial_id, [Report(1, value)])
                assert bool(reason) is (is_stopped and value == 2.0)
        with pytest.raises(InvalidInputError, match="stop_early is 'mean', expected median, asha, hyperband, none"):
            service.create(replace(STUDY, study_id="mean", name="mean", stop_early="mean"))

    def test_reasons_have_values_as_readers_see_them(self, service: StudyService) -> None:
        name = "maximised"
        service.create(replace(STUDY, study_id=name, name=name, stop_early="asha", direction="maximise"))
        first, second = service.suggest(name, 2, ALICE)
        service.report(name, first.trial_id, [Report(3, -0.9)])
        reason = service.report(name, second.trial_id, [Report(3, -0.7)])
        assert reason == "at step 3 its value, 0.7, is not among the best third of 2 trials, which ends with 0.9"

    def test_only_the_holder_of_a_lease_reports(self, service: StudyService, clock: Clock) -> None:
        [record] = service.suggest(NAME, 1, ALICE)
        with pytest.raises(ConflictError, match="leased by 'alice', not by 'bob'"):
            service.report(NAME, record.trial_id, [Report(0, 1.0)], owner="bob")
        clock.pass_seconds(61)
        service.suggest(NAME, 1, BOB)
        with pytest.raises(ConflictError, match="leased by 'bob', not by 'alice'"):
            service.report(NAME, record.trial_id, [Report(0, 1.0)], owner="alice")
        service.complete(NAME, record.trial_id, 1.0)
        with pytest.raises(ConflictError, match="is done, expected leased"):
            service.report(NAME, record.trial_id, [Report(0, 1.0)])
        with pytest.raises(NotFoundError):
            service.report(NAME, "nobody", [Report(0, 1.0)])
        assert service.reports(NAME) == {}

    def test_batches_have_bounds(self, service: StudyService) -> None:
        [record] = service.suggest(NAME, 1, ALICE)
        assert service.report(NAME, record.trial_id, [Report(step, 1.0) for step in range(BATCH_MAX)]) == ""
        for reports in ([], [Report(step, 1.0) for step in range(BATCH_MAX + 1)]):
            with pytest.raises(InvalidInputError):
                service.report(NAME, record.trial_id, reports)
        assert len(service.reports(NAME)[record.trial_id]) == BATCH_MAX
