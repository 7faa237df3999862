"""Promises of every service about a study's life: its start, what people add, its budget, name and end."""

from dataclasses import replace

import pytest
from tests.models.tuner.service.service_contract import ALICE, BOB, NAME, SECOND, STUDY, Clock, in_threads

from crosswind.data.schema.errors import ConflictError, InvalidInputError, NotFoundError
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.trial import Configuration, Study, TrialRecord, TrialState
from crosswind.models.tuner.service.service import Lease, StudyService

FIRST: Configuration = {"batch": 32, "fused": True}
SECOND_BEST: Configuration = {"batch": 64, "fused": False}


def configurations(records: list[TrialRecord]) -> list[Configuration]:
    return [record.trial.configuration for record in records]


class LifeContract:
    """The promises; a class that inherits them has fixtures `service`, which holds STUDY, and `clock`."""

    def test_the_start_is_handed_out_first_and_counts_for_the_budget(self, service: StudyService) -> None:
        made = service.create(replace(STUDY, study_id="s2", name="n", start=(FIRST, SECOND_BEST), trials_max=3))
        assert made.start == (FIRST, SECOND_BEST)
        assert service.status("n").study.start == (FIRST, SECOND_BEST)
        assert [record.trial.state for record in service.trials("n")] == [TrialState.WAITING] * 2
        records = service.suggest("n", 5, ALICE)
        assert configurations(records)[:2] == [FIRST, SECOND_BEST]
        assert len(records) == 3

    @pytest.mark.parametrize(
        ("start", "message"),
        [
            ([{"batch": 32}], "start: configuration 1: parameter fused is missing"),
            (
                [FIRST, {"batch": 999, "fused": True}],
                "start: configuration 2: parameter batch is 999, expected",
            ),
            ([FIRST, FIRST], "start: configuration 2 repeats configuration 1"),
            ([{"batch": at, "fused": True} for at in range(1, 5)], "start has 4 configurations, expected at most 3"),
            ({"batch": 32}, "start is .*expected a list of configurations"),
        ],
    )
    def test_a_start_that_cannot_be_tried_is_refused(self, service: StudyService, start: object, message: str) -> None:
        fields = {**STUDY.as_json(), "study_id": "s2", "name": "n", "trials_max": 3, "details": {"start": start}}
        with pytest.raises(InvalidInputError, match=message):
            service.create(Study.from_json(fields))
        with pytest.raises(NotFoundError, match="'n'"):
            service.trials("n")

    def test_an_enqueued_configuration_comes_before_anything_new(self, service: StudyService) -> None:
        queued = service.enqueue(NAME, [FIRST, SECOND_BEST])
        assert [record.trial.state for record in queued] == [TrialState.WAITING] * 2
        assert service.trials(NAME) == queued
        assert configurations(service.suggest(NAME, 1, ALICE)) == [FIRST]
        records = service.suggest(NAME, 2, BOB)
        assert configurations(records)[0] == SECOND_BEST
        assert configurations(records)[1] not in (FIRST, SECOND_BEST)

    def test_what_waits_already_is_not_enqueued_twice(self, service: StudyService) -> None:
        [first] = service.enqueue(NAME, [FIRST])
        assert service.enqueue(NAME, [FIRST])[0] == first
        service.suggest(NAME, 1, ALICE)
        [again] = service.enqueue(NAME, [FIRST])
        assert again.trial_id != first.trial_id
        assert len(service.trials(NAME)) == 2

    def test_a_configuration_is_enqueued_once_by_a_request(self, service: StudyService) -> None:
        with pytest.raises(InvalidInputError, match="configuration 3 repeats configuration 1, expected it once"):
            service.enqueue(NAME, [FIRST, SECOND_BEST, FIRST])
        assert service.trials(NAME) == []

    def test_the_same_enqueuing_request_again_gets_the_same_trials(self, service: StudyService) -> None:
        request = RequestKey("q1", "enqueue")
        [first] = service.enqueue(NAME, [FIRST], request=request)
        [leased] = service.suggest(NAME, 1, ALICE)
        [same] = service.enqueue(NAME, [FIRST], request=request)
        assert (leased.trial_id, same.trial_id) == (first.trial_id, first.trial_id)
        assert len(service.trials(NAME)) == 1

    def test_a_configuration_from_elsewhere_is_not_enqueued(self, service: StudyService) -> None:
        for foreign in ({"batch": 32}, {**FIRST, "x": 1}, {"batch": 0, "fused": True}):
            with pytest.raises(InvalidInputError, match="configuration 2: parameter"):
                service.enqueue(NAME, [FIRST, foreign])
        with pytest.raises(InvalidInputError, match="configurations"):
            service.enqueue(NAME, [])
        assert service.trials(NAME) == []

    def test_a_used_up_budget_is_not_enqueued_beyond(self, service: StudyService) -> None:
        service.create(replace(STUDY, study_id="s2", name="n", trials_max=1))
        with pytest.raises(ConflictError, match="of 1 trials, of which 1 are left, expected 2: extend it first"):
            service.enqueue("n", [FIRST, SECOND_BEST])
        service.enqueue("n", [FIRST])
        assert len(service.suggest("n", 3, ALICE)) == 1
        with pytest.raises(ConflictError, match="of which 0 are left"):
            service.enqueue("n", [SECOND_BEST])

    def test_a_failed_trial_is_retried_as_a_new_one(self, service: StudyService) -> None:
        [failed, done] = service.suggest(NAME, 2, ALICE)
        service.complete(NAME, done.trial_id, 1.0)
        for trial_id in (failed.trial_id, done.trial_id):
            with pytest.raises(ConflictError, match="expected failed or infeasible or pruned"):
                service.retry(NAME, trial_id)
        service.fail(NAME, failed.trial_id, "disk full")
        again = service.retry(NAME, failed.trial_id)
        assert (again.trial.state, again.trial.configuration) == (TrialState.WAITING, failed.trial.configuration)
        assert service.retry(NAME, failed.trial_id) == again
        [leased] = service.suggest(NAME, 1, BOB)
        assert leased.trial_id == again.trial_id
        assert service.trial(NAME, failed.trial_id).trial.state is TrialState.FAILED
        with pytest.raises(NotFoundError, match="t9"):
            service.retry(NAME, "t9")

    def test_an_extended_budget_hands_out_more(self, service: StudyService) -> None:
        service.create(replace(STUDY, study_id="s2", name="n", trials_max=1))
        [first] = service.suggest("n", 2, ALICE)
        service.complete("n", first.trial_id, 1.0)
        assert service.status("n").is_exhausted
        assert service.extend("n", trials=2).trials_max == 3
        assert not service.status("n").is_exhausted
        assert service.status("n").study.trials_max == 3
        assert len(service.suggest("n", 5, ALICE)) == 2

    def test_the_same_extending_request_again_adds_nothing(self, service: StudyService) -> None:
        service.create(replace(STUDY, study_id="s2", name="n", trials_max=1))
        request = RequestKey("e1", "extend")
        assert service.extend("n", trials=2, request=request).trials_max == 3
        assert service.extend("n", trials=2, request=request).trials_max == 3
        assert service.extend("n", trials=2, request=RequestKey("e2", "extend")).trials_max == 5

    def test_two_who_extend_at_once_both_add(self, service: StudyService) -> None:
        service.create(replace(STUDY, study_id="s2", name="n", trials_max=1))
        in_threads(lambda: service.extend("n", trials=1) and None, 4)
        assert service.status("n").study.trials_max == 5

    def test_hours_are_added_from_now_on(self, service: StudyService, clock: Clock) -> None:
        study = service.create(replace(STUDY, study_id="s2", name="n", created_ns=clock.ns, hours=1.0))
        assert service.extend("n", hours=1.0).ends_ns == study.created_ns + 2 * 3600 * SECOND
        clock.pass_seconds(4 * 3600)
        assert service.suggest("n", 1, ALICE) == []
        extended = service.extend("n", hours=0.5)
        assert extended.ends_ns == pytest.approx(clock.ns + 1800 * SECOND, abs=10 * SECOND)
        assert len(service.suggest("n", 1, ALICE)) == 1

    @pytest.mark.parametrize(
        ("trials", "hours", "message"),
        [
            (0, None, "trials"),
            (4_999, None, "trials|5000"),
            (None, -1.0, "hours"),
            (None, 1.0, "no budget of hours"),
            (None, None, "trials or hours"),
        ],
    )
    def test_an_impossible_extension_is_refused(
        self, service: StudyService, trials: int | None, hours: float | None, message: str
    ) -> None:
        service.create(replace(STUDY, study_id="s2", name="n", trials_max=2))
        with pytest.raises(InvalidInputError, match=message):
            service.extend("n", trials=trials, hours=hours)
        with pytest.raises(InvalidInputError, match="no budget of trials"):
            service.extend(NAME, trials=1)
        assert service.status("n").study.trials_max == 2

    def test_a_renamed_study_keeps_its_trials_and_frees_its_name(self, service: StudyService) -> None:
        [record] = service.suggest(NAME, 1, ALICE)
        done = service.complete(NAME, record.trial_id, 1.0)
        assert service.rename(NAME, "other / ü").name == "other / ü"
        assert service.trials("other / ü") == service.trials("s1") == [done]
        with pytest.raises(NotFoundError, match="is not in"):
            service.status(NAME)
        service.create(replace(STUDY, study_id="s2"))
        assert service.trials(NAME) == []
        assert len(service.suggest("other / ü", 1, ALICE)) == 1

    def test_a_name_that_is_taken_or_none_is_refused(self, service: StudyService) -> None:
        service.create(replace(STUDY, study_id="s2", name="n"))
        with pytest.raises(ConflictError, match="'n' is taken"):
            service.rename(NAME, "n")
        with pytest.raises(InvalidInputError, match="name"):
            service.rename(NAME, "")
        assert service.rename(NAME, NAME).name == NAME
        with pytest.raises(NotFoundError, match="s9"):
            service.rename("s9", "m")

    @pytest.mark.parametrize("name", ["a\nb", "a\x1b[2J", "\x7f", "x\udcff", "", "x" * 201])
    def test_a_name_that_nobody_can_read_or_type_is_refused(self, service: StudyService, name: str) -> None:
        with pytest.raises(InvalidInputError, match=r"name|half a character"):
            service.rename(NAME, name)
        with pytest.raises(InvalidInputError, match=r"name|half a character"):
            service.create(replace(STUDY, study_id="s2", name=name))
        assert [status.study for status in service.studies()] == [STUDY]

    def test_a_study_is_deleted_with_its_trials(self, service: StudyService) -> None:
        [record] = service.suggest(NAME, 1, ALICE)
        service.complete(NAME, record.trial_id, 1.0)
        service.delete(NAME)
        for study in (NAME, "s1"):
            with pytest.raises(NotFoundError, match="is not in"):
                service.trials(study)
        service.create(replace(STUDY, study_id="s2"))
        assert service.trials(NAME) == []
        with pytest.raises(NotFoundError, match="s9"):
            service.delete("s9")

    def test_while_trials_are_evaluated_a_study_keeps_its_name_and_life(
        self, service: StudyService, clock: Clock
    ) -> None:
        service.suggest(NAME, 1, ALICE)
        with pytest.raises(ConflictError, match="1 trial is being evaluated"):
            service.delete(NAME)
        with pytest.raises(ConflictError, match="1 trial is being evaluated"):
            service.rename(NAME, "n")
        assert service.rename(NAME, "n", force=True).name == "n"
        clock.pass_seconds(61)
        assert service.rename("n", "m").name == "m"
        service.suggest("m", 1, ALICE)
        service.delete("m", force=True)
        with pytest.raises(NotFoundError, match="'m'"):
            service.status("m")

    def test_every_study_is_listed_with_its_progress(self, service: StudyService) -> None:
        service.create(replace(STUDY, study_id="s2", name="n", created_ns=2, start=(FIRST,)))
        [record] = service.suggest(NAME, 1, ALICE)
        service.complete(NAME, record.trial_id, 1.5)
        listed = {status.study.name: status for status in service.studies()}
        assert set(listed) == {NAME, "n"}
        assert listed[NAME].best == service.trial(NAME, record.trial_id)
        assert (listed["n"].counts[TrialState.WAITING], listed["n"].best) == (1, None)

    def test_what_ended_for_another_reason_is_not_charged_and_says_nothing(self, service: StudyService) -> None:
        space = {"fused": {"kind": "boolean"}}
        service.create(replace(STUDY, study_id="s2", name="n", space=space, trials_max=2))
        [typo] = service.suggest("n", 1, ALICE)
        failed = service.fail("n", typo.trial_id, "exit code 127", charged=False)
        assert (failed.charged, failed.trial.state) == (False, TrialState.FAILED)
        assert service.fail("n", typo.trial_id, "again", charged=False) == failed
        status = service.status("n")
        assert (status.charged, status.uncharged, status.is_exhausted) == (0, 1, False)
        records = service.suggest("n", 5, ALICE)
        assert sorted(bool(record.trial.configuration["fused"]) for record in records) == [False, True]
        for record in records:
            assert service.complete("n", record.trial_id, 1.0).charged
        status = service.status("n")
        assert (status.charged, status.uncharged, status.is_exhausted) == (2, 1, True)
        assert service.suggest("n", 1, Lease("bob", 60)) == []
