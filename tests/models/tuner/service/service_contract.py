"""Promises of every service, wherever its studies are; a class that inherits them runs them for a service."""

import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import pytest

from crosswind.data.schema.errors import ConflictError, InvalidInputError, NotFoundError
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.trial import Study, TrialState
from crosswind.models.tuner.service.service import Lease, StudyService

SPACE = {"batch": {"kind": "int", "low": 1, "high": 200}, "fused": {"kind": "boolean"}}
STUDY = Study("s1", "buckets / ü", SPACE, "step_p50_seconds", "s", 7, 1, details={"goals": ["time"]})
NAME = STUDY.name
ALICE = Lease("alice", 60)
BOB = Lease("bob", 60)
SECOND = 1_000_000_000


class Clock(Protocol):
    """The clock that leases run on, set by the test."""

    ns: int

    def pass_seconds(self, seconds: float) -> None:
        """Let so much time pass."""
        ...


class StudyServiceContract:
    """The promises; a class that inherits them has fixtures `service`, which holds STUDY, and `clock`."""

    def test_a_study_comes_back_whole_by_name_and_by_id(self, service: StudyService) -> None:
        assert service.status("s1").study == service.status(NAME).study == STUDY

    @pytest.mark.parametrize("sources", [(), (NAME,), ("s1", NAME), None])
    def test_a_study_keeps_the_sources_that_it_names(
        self, service: StudyService, sources: tuple[str, ...] | None
    ) -> None:
        made = service.create(replace(STUDY, study_id="s2", name="newer", sources=sources))
        assert made.sources == sources
        assert service.status("newer").study.sources == sources

    def test_a_source_that_is_not_there_is_refused_with_near_names(self, service: StudyService) -> None:
        with pytest.raises(
            InvalidInputError, match="sources: there is no study 'buckets / u'; near it are buckets / ü"
        ):
            service.create(replace(STUDY, study_id="s2", name="newer", sources=("buckets / u",)))
        with pytest.raises(NotFoundError):
            service.status("newer")

    @pytest.mark.parametrize("sources", ["every", ["", "s1"], [], 5])
    def test_sources_that_are_none_are_refused(self, service: StudyService, sources: object) -> None:
        with pytest.raises(InvalidInputError, match=r"sources is .*expected auto, none or a list of names of studies"):
            service.create(replace(STUDY, study_id="s2", name="newer", details={"sources": sources}))

    def test_a_trial_goes_from_lease_to_outcome(self, service: StudyService) -> None:
        [record] = service.suggest(NAME, 1, Lease("alice", 60, "12_3"))
        trial_id = record.trial.trial_id
        assert (record.trial.state, record.owner, record.job) == (TrialState.LEASED, "alice", "12_3")
        measured = {"energy_joules": 10.5, "memory_bytes": 3.0}
        done = service.complete(NAME, trial_id, 0.25, owner="alice", run_id="r1", outcomes=measured)
        assert (done.trial.state, done.trial.objective, done.run_id) == (TrialState.DONE, 0.25, "r1")
        assert (dict(done.outcomes), done.lease_expires_ns) == (measured, None)
        assert service.trial(NAME, trial_id) == done
        assert service.trials("s1") == [done]
        assert service.best(NAME) == done.trial

    def test_leases_run_out_on_the_services_clock_and_not_before(self, service: StudyService, clock: Clock) -> None:
        [first] = service.suggest(NAME, 1, ALICE)
        clock.pass_seconds(59.9)
        [fresh] = service.suggest(NAME, 1, BOB)
        clock.pass_seconds(0.2)
        [again] = service.suggest(NAME, 1, BOB)
        assert fresh.trial.trial_id != first.trial.trial_id
        assert (again.trial, again.owner, again.losses) == (first.trial, "bob", 1)

    def test_a_heartbeat_lets_the_lease_run_anew(self, service: StudyService, clock: Clock) -> None:
        [record] = service.suggest(NAME, 1, ALICE)
        clock.pass_seconds(50)
        renewed = service.heartbeat(NAME, record.trial.trial_id, Lease("alice", 100))
        assert (renewed.lease_expires_ns or 0) - (record.lease_expires_ns or 0) == 90 * SECOND
        clock.pass_seconds(99)
        [other] = service.suggest(NAME, 1, BOB)
        assert other.trial.trial_id != record.trial.trial_id
        clock.pass_seconds(2)
        [lost] = service.suggest(NAME, 1, BOB)
        assert lost.trial.trial_id == record.trial.trial_id

    def test_a_lost_trial_takes_no_heartbeat_outcome_or_release(self, service: StudyService, clock: Clock) -> None:
        [record] = service.suggest(NAME, 1, ALICE)
        trial_id = record.trial.trial_id
        clock.pass_seconds(61)
        [taken] = service.suggest(NAME, 1, BOB)
        reports: tuple[Callable[[], object], ...] = (
            lambda: service.heartbeat(NAME, trial_id, ALICE),
            lambda: service.complete(NAME, trial_id, 1.0, owner="alice"),
            lambda: service.fail(NAME, trial_id, "late", owner="alice"),
            lambda: service.release(NAME, trial_id, owner="alice"),
        )
        for late in reports:
            with pytest.raises(ConflictError, match="leased by 'bob', not by 'alice'"):
                late()
        assert service.trial(NAME, trial_id) == taken

    def test_a_late_outcome_is_taken_while_nobody_else_has_the_trial(self, service: StudyService, clock: Clock) -> None:
        [record] = service.suggest(NAME, 1, ALICE)
        clock.pass_seconds(61)
        assert service.complete(NAME, record.trial.trial_id, 2.0, owner="alice").trial.objective == 2.0

    def test_the_next_who_gets_a_released_trial_gets_the_checkpoint(self, service: StudyService) -> None:
        [record] = service.suggest(NAME, 1, ALICE)
        released = service.release(NAME, record.trial.trial_id, owner="alice", checkpoint="/scratch/c.pt")
        assert (released.trial.state, released.checkpoint) == (TrialState.RELEASED, "/scratch/c.pt")
        assert service.release(NAME, record.trial.trial_id) == released
        [again] = service.suggest(NAME, 1, BOB)
        assert (again.trial, again.checkpoint, again.losses) == (record.trial, "/scratch/c.pt", 0)
        assert service.release(NAME, record.trial.trial_id, checkpoint="/scratch/d.pt").checkpoint == "/scratch/d.pt"

    def test_a_job_that_requests_again_gets_its_own_trial_back(self, service: StudyService) -> None:
        first, second = Lease("n1", 60, "7_1"), Lease("n2", 60, "7_2")
        [mine], [other] = service.suggest(NAME, 1, first), service.suggest(NAME, 1, second)
        [held] = service.suggest(NAME, 1, Lease("n3", 60, "7_2"))
        assert (held.trial, held.owner) == (other.trial, "n3")
        for record in (held, mine):
            service.release(NAME, record.trial.trial_id)
        [requeued] = service.suggest(NAME, 1, second)
        assert (requeued.trial.trial_id, requeued.owner) == (other.trial.trial_id, "n2")

    def test_a_trial_whose_holders_vanish_again_and_again_fails(self, service: StudyService, clock: Clock) -> None:
        [record] = service.suggest(NAME, 1, ALICE)
        for _ in range(4):
            clock.pass_seconds(61)
            [again] = service.suggest(NAME, 1, ALICE)
            assert again.trial.trial_id == record.trial.trial_id
        clock.pass_seconds(61)
        [new] = service.suggest(NAME, 1, BOB)
        lost = service.trial(NAME, record.trial.trial_id)
        assert new.trial.trial_id != record.trial.trial_id
        assert (lost.trial.state, lost.losses) == (TrialState.FAILED, 5)
        assert lost.reason == "5 leases ran out without a word, the last one of alice"

    def test_the_same_outcome_again_changes_nothing_and_another_is_refused(self, service: StudyService) -> None:
        [record] = service.suggest(NAME, 1, ALICE)
        trial_id = record.trial.trial_id
        done = service.complete(NAME, trial_id, -0.25, outcomes={"a": 1.0})
        assert service.complete(NAME, trial_id, -0.25) == done
        assert service.complete(NAME, trial_id, -0.25, owner="eve", outcomes={"a": 1.0}) == done
        with pytest.raises(ConflictError, match=r"done with objective -0.25, expected that again, not 0.5"):
            service.complete(NAME, trial_id, 0.5)
        with pytest.raises(ConflictError, match=r"done with outcomes \{'a': 1.0\}"):
            service.complete(NAME, trial_id, -0.25, outcomes={"a": 2.0})
        assert service.trial(NAME, trial_id) == done

    @pytest.mark.parametrize("state", [TrialState.FAILED, TrialState.INFEASIBLE, TrialState.PRUNED])
    def test_an_ended_trial_takes_no_other_end(self, service: StudyService, state: TrialState) -> None:
        [record] = service.suggest(NAME, 1, ALICE)
        trial_id = record.trial.trial_id
        failed = service.fail(NAME, trial_id, "out of memory", state=state, owner="alice")
        assert (failed.trial.state, failed.reason, failed.lease_expires_ns) == (state, "out of memory", None)
        assert service.fail(NAME, trial_id, "again", state=state) == failed
        reports: tuple[Callable[[], object], ...] = (
            lambda: service.complete(NAME, trial_id, 1.0),
            lambda: service.release(NAME, trial_id),
        )
        for late in reports:
            with pytest.raises(ConflictError, match=f"is {state}, expected .*leased or released"):
                late()
        with pytest.raises(ConflictError, match="expected leased"):
            service.heartbeat(NAME, trial_id, ALICE)
        [new] = service.suggest(NAME, 1, ALICE)
        assert new.trial.configuration != record.trial.configuration

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
    def test_a_number_that_is_not_finite_is_refused(self, service: StudyService, value: float) -> None:
        [record] = service.suggest(NAME, 1, ALICE)
        with pytest.raises(InvalidInputError, match="objective"):
            service.complete(NAME, record.trial.trial_id, value)
        with pytest.raises(InvalidInputError, match="power_watts"):
            service.complete(NAME, record.trial.trial_id, 1.0, outcomes={"power_watts": value})
        assert service.trial(NAME, record.trial.trial_id) == record

    def test_a_budget_is_kept_and_its_end_shows(self, service: StudyService) -> None:
        service.create(replace(STUDY, study_id="s2", name="three", trials_max=3))
        records = service.suggest("three", 5, ALICE)
        assert len(records) == 3
        assert service.suggest("three", 1, BOB) == []
        for record in records[:2]:
            service.complete("three", record.trial.trial_id, 1.0)
        assert not service.status("three").is_exhausted
        service.release("three", records[2].trial.trial_id)
        [last] = service.suggest("three", 5, BOB)
        service.fail("three", last.trial.trial_id, "no memory")
        assert service.status("three").is_exhausted
        assert service.suggest("three", 1, BOB) == []
        assert not service.status(NAME).is_exhausted

    @pytest.mark.parametrize("budget", [0, -1, 5_001])
    def test_an_impossible_budget_is_refused(self, service: StudyService, budget: int) -> None:
        with pytest.raises(InvalidInputError, match="trials_max"):
            service.create(replace(STUDY, study_id="s2", name="n", trials_max=budget))
        with pytest.raises(NotFoundError, match="'n'"):
            service.trials("n")

    def test_a_space_that_is_used_up_gives_no_more(self, service: StudyService) -> None:
        service.create(replace(STUDY, study_id="s2", name="small", space={"fused": {"kind": "boolean"}}))
        records = service.suggest("small", 5, ALICE)
        assert sorted(bool(record.trial.configuration["fused"]) for record in records) == [False, True]
        assert service.suggest("small", 1, BOB) == []

    def test_a_released_trial_is_not_begun_a_second_time(self, service: StudyService) -> None:
        service.create(replace(STUDY, study_id="s2", name="small", space={"fused": {"kind": "boolean"}}))
        [first] = service.suggest("small", 1, ALICE)
        service.release("small", first.trial.trial_id)
        records = service.suggest("small", 5, BOB)
        assert sorted(bool(record.trial.configuration["fused"]) for record in records) == [False, True]

    def test_the_best_trial_has_the_smallest_objective(self, service: StudyService) -> None:
        assert service.best(NAME) is None
        records = service.suggest(NAME, 4, ALICE)
        for record, objective in zip(records, (3.0, -1.0, 2.0), strict=False):
            service.complete(NAME, record.trial.trial_id, objective)
        status = service.status(NAME)
        assert status.best == service.trial(NAME, records[1].trial.trial_id)
        assert (status.counts[TrialState.DONE], status.counts[TrialState.LEASED]) == (3, 1)
        assert status.counts[TrialState.FAILED] == 0

    def test_limits_and_several_objectives_decide_what_is_best(self, service: StudyService) -> None:
        limits, objectives = ("memory_bytes <= 8",), ("step_p50_seconds", "energy_joules")
        service.create(replace(STUDY, study_id="s2", name="limited", limits=limits))
        service.create(replace(STUDY, study_id="s3", name="both", limits=limits, objectives=objectives))
        measured = [(1.0, 9.0, 1.0), (2.0, 8.0, 5.0), (3.0, 8.0, 6.0), (4.0, 1.0, 4.0)]
        for name, front in (("limited", [1]), ("both", [1, 3])):
            ids = []
            for seconds, memory, energy in measured:
                [record] = service.suggest(name, 1, ALICE)
                ids.append(record.trial.trial_id)
                service.complete(name, ids[-1], seconds, outcomes={"memory_bytes": memory, "energy_joules": energy})
            [unmeasured] = service.suggest(name, 1, ALICE)
            service.complete(name, unmeasured.trial.trial_id, 0.5)
            status = service.status(name)
            assert [record.trial.trial_id for record in status.front] == [ids[place] for place in front]
            assert (status.outside, status.unjudged) == (1, 1)
            assert service.best(name) == service.trial(name, ids[1]).trial

    def test_a_study_whose_hours_are_over_hands_out_nothing(self, service: StudyService, clock: Clock) -> None:
        study = service.create(replace(STUDY, study_id="s2", name="hour", created_ns=clock.ns, hours=1.0))
        request = RequestKey("k3", "suggest 2")
        clock.pass_seconds(3599)
        held, given_back = service.suggest("hour", 2, ALICE, request=request)
        service.release("hour", given_back.trial.trial_id)
        assert service.status("hour").ends_ns == study.created_ns + 3600 * SECOND
        clock.pass_seconds(30)
        assert service.suggest("hour", 1, BOB) == []
        assert service.suggest("hour", 2, ALICE, request=request)[0].trial == held.trial
        assert not service.status("hour").is_exhausted
        service.complete("hour", held.trial.trial_id, 1.0, owner="alice")
        assert service.status("hour").is_exhausted
        assert not service.status(NAME).is_exhausted

    @pytest.mark.parametrize("details", [{"hours": -1}, {"limits": ["memory"]}, {"objectives": ["a", "b"]}])
    def test_a_study_with_an_impossible_aim_is_refused(self, service: StudyService, details: dict[str, object]) -> None:
        with pytest.raises(InvalidInputError, match=r"hours is -1|limit 'memory'|first of objectives is 'a'"):
            service.create(Study.from_json({**STUDY.as_json(), "study_id": "s2", "name": "n", "details": details}))
        with pytest.raises(NotFoundError, match="'n'"):
            service.trials("n")

    def test_the_same_request_again_gets_the_same_trials(self, service: StudyService) -> None:
        request = RequestKey("k1", "suggest 2")
        records = service.suggest(NAME, 2, ALICE, request=request)
        service.complete(NAME, records[0].trial.trial_id, 1.0)
        again = service.suggest(NAME, 2, ALICE, request=request)  # as they were, or as they now stand
        assert [record.trial.trial_id for record in again] == [record.trial.trial_id for record in records]
        assert len(service.trials(NAME)) == 2

    def test_the_same_creation_again_gets_the_study_made_first(self, service: StudyService) -> None:
        request = RequestKey("k2", "create")
        first = service.create(replace(STUDY, study_id="s2", name="n"), request=request)
        assert service.create(replace(STUDY, study_id="s3", name="n"), request=request) == first
        with pytest.raises(ConflictError, match="'n' is taken"):
            service.create(replace(STUDY, study_id="s4", name="n"))

    def test_a_foreign_trial_or_a_missing_one_is_not_found(self, service: StudyService) -> None:
        service.create(replace(STUDY, study_id="s2", name="other"))
        [foreign] = service.suggest("other", 1, ALICE)
        for trial_id in (foreign.trial.trial_id, "t9", "../study", "s1-000000", "s1-9999999999999999999"):
            with pytest.raises(NotFoundError, match="trial"):
                service.complete(NAME, trial_id, 1.0)
        with pytest.raises(NotFoundError, match="study 's9'"):
            service.suggest("s9", 1, ALICE)
        assert service.trial("other", foreign.trial.trial_id) == foreign

    def test_a_study_over_no_space_is_not_stored(self, service: StudyService) -> None:
        with pytest.raises(InvalidInputError, match="batch"):
            service.create(replace(STUDY, study_id="s2", name="n", space={"batch": {"kind": "whole"}}))
        with pytest.raises(NotFoundError, match="'n'"):
            service.trials("n")

    @pytest.mark.parametrize("count", [0, -1, 101])
    def test_an_impossible_count_is_refused(self, service: StudyService, count: int) -> None:
        with pytest.raises(InvalidInputError, match="count"):
            service.suggest(NAME, count, ALICE)

    def test_two_requests_at_once_never_get_the_same_trial(self, service: StudyService) -> None:
        got: list[str] = []
        configurations: list[str] = []

        def request() -> None:
            owner = Lease(str(uuid.uuid4()), 60)
            for _ in range(3):
                for record in service.suggest(NAME, 2, owner):
                    got.append(record.trial.trial_id)
                    configurations.append(str(record.trial.configuration))
                    assert record.owner == owner.owner

        in_threads(request, 4)
        assert len(got) == len(set(got)) == len(set(configurations)) == 24

    def test_of_two_outcomes_at_once_one_is_refused(self, service: StudyService) -> None:
        [record] = service.suggest(NAME, 1, ALICE)
        refused: list[float] = []
        values = iter((1.0, 2.0, 3.0, 4.0))

        def complete() -> None:
            value = next(values)
            try:
                service.complete(NAME, record.trial.trial_id, value)
            except ConflictError:
                refused.append(value)

        in_threads(complete, 4)
        stored = service.trial(NAME, record.trial.trial_id).trial.objective
        assert sorted([*refused, stored or 0.0]) == [1.0, 2.0, 3.0, 4.0]


def in_threads(work: Callable[[], None], count: int) -> None:
    """Do the work so many times at once. Raises: AssertionError with the faults."""
    faults: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - asserted below
            faults.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=180)
    assert faults == []
