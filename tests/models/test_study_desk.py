import threading
import uuid
from collections.abc import Callable
from dataclasses import replace

import pytest

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.leases import TrialRecord
from crosswind.data.catalog.requests import RequestKey
from crosswind.data.errors import ConflictError, InvalidInputError, NotFoundError
from crosswind.data.trial import Study, Trial, TrialState
from crosswind.models.tuner.desk import LEASE_SECONDS_MAX, Lease, StudyDesk, best_of

SPACE = {"batch": {"kind": "int", "low": 1, "high": 200}, "fused": {"kind": "boolean"}}
STUDY = Study("s1", "buckets", SPACE, "step_p50_seconds", "s", 7, 1)
ALICE = Lease("alice", 60)
BOB = Lease("bob", 60)
SECOND = 1_000_000_000


class Clock:
    """The server's clock, told by the test."""

    ns = 1_000 * SECOND

    def __call__(self) -> int:
        return self.ns

    def pass_seconds(self, seconds: float) -> None:
        self.ns += round(seconds * SECOND)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def desk(catalog: Catalog, clock: Clock) -> StudyDesk:
    desk = StudyDesk(catalog, clock=clock)
    desk.create(STUDY)
    return desk


def test_suggested_trials_are_leased_until_the_servers_clock_says_so(desk: StudyDesk, clock: Clock) -> None:
    records = desk.suggest("s1", 3, ALICE)
    assert {(each.trial.state, each.owner, each.lease_expires_ns) for each in records} == {
        (TrialState.LEASED, "alice", clock.ns + 60 * SECOND)
    }
    assert len({str(each.trial.configuration) for each in records}) == 3
    assert sorted(records, key=lambda each: each.trial.trial_id) == desk.trials("buckets")


def test_a_trial_whose_lease_ran_out_goes_to_the_next_before_anything_new(desk: StudyDesk, clock: Clock) -> None:
    [first] = desk.suggest("s1", 1, ALICE)
    clock.pass_seconds(60)
    [fresh] = desk.suggest("s1", 1, BOB)
    clock.pass_seconds(0.1)
    [again, new] = desk.suggest("s1", 2, BOB)
    assert fresh.trial.trial_id != first.trial.trial_id
    assert (again.trial, again.owner) == (first.trial, "bob")
    assert new.trial.trial_id not in {first.trial.trial_id, fresh.trial.trial_id}


def test_a_released_trial_is_handed_out_again(desk: StudyDesk) -> None:
    [first] = desk.suggest("s1", 1, ALICE)
    released = desk.release("s1", first.trial.trial_id, owner="alice")
    assert (released.trial.state, released.lease_expires_ns) == (TrialState.RELEASED, None)
    assert desk.release("s1", first.trial.trial_id) == released
    [again] = desk.suggest("s1", 1, BOB)
    assert again.trial == first.trial


def test_a_heartbeat_lets_the_lease_run_anew(desk: StudyDesk, clock: Clock) -> None:
    [record] = desk.suggest("s1", 1, ALICE)
    clock.pass_seconds(50)
    beaten = desk.heartbeat("s1", record.trial.trial_id, Lease("alice", 100))
    assert beaten.lease_expires_ns == clock.ns + 100 * SECOND
    clock.pass_seconds(99)
    [other] = desk.suggest("s1", 1, BOB)
    assert other.trial.trial_id != record.trial.trial_id


def test_a_heartbeat_of_who_lost_the_trial_is_refused(desk: StudyDesk, clock: Clock) -> None:
    [record] = desk.suggest("s1", 1, ALICE)
    clock.pass_seconds(61)
    desk.suggest("s1", 1, BOB)
    with pytest.raises(ConflictError, match="leased by 'bob', not by 'alice'"):
        desk.heartbeat("s1", record.trial.trial_id, ALICE)
    desk.release("s1", record.trial.trial_id, owner="bob")
    with pytest.raises(ConflictError, match="is released, expected leased"):
        desk.heartbeat("s1", record.trial.trial_id, ALICE)


def test_completing_again_with_the_same_value_changes_nothing(desk: StudyDesk) -> None:
    [record] = desk.suggest("s1", 1, ALICE)
    done = desk.complete("s1", record.trial.trial_id, 0.25, owner="alice", run_id="r1")
    assert (done.trial.state, done.trial.objective, done.run_id) == (TrialState.DONE, 0.25, "r1")
    assert desk.complete("s1", record.trial.trial_id, 0.25) == done
    with pytest.raises(ConflictError, match=r"done with objective 0.25, expected that again, not 0.5"):
        desk.complete("s1", record.trial.trial_id, 0.5)
    assert desk.trial("s1", record.trial.trial_id) == done


def test_a_late_outcome_is_taken_while_nobody_else_has_the_trial(desk: StudyDesk, clock: Clock) -> None:
    [record, other] = desk.suggest("s1", 2, ALICE)
    clock.pass_seconds(61)
    assert desk.complete("s1", record.trial.trial_id, 2.0, owner="alice").trial.objective == 2.0
    desk.suggest("s1", 1, BOB)
    with pytest.raises(ConflictError, match="leased by 'bob'"):
        desk.complete("s1", other.trial.trial_id, 1.0, owner="alice")


@pytest.mark.parametrize("state", [TrialState.FAILED, TrialState.INFEASIBLE, TrialState.PRUNED])
def test_a_failed_trial_keeps_its_reason_and_is_over(desk: StudyDesk, state: TrialState) -> None:
    [record] = desk.suggest("s1", 1, ALICE)
    trial_id = record.trial.trial_id
    failed = desk.fail("s1", trial_id, "out of memory", state=state, owner="alice")
    assert (failed.trial.state, failed.reason, failed.lease_expires_ns) == (state, "out of memory", None)
    assert desk.fail("s1", trial_id, "again", state=state) == failed
    for late in (lambda: desk.complete("s1", trial_id, 1.0), lambda: desk.release("s1", trial_id)):
        with pytest.raises(ConflictError, match=f"is {state}, expected .*leased or released"):
            late()
    with pytest.raises(ConflictError, match="expected leased"):
        desk.heartbeat("s1", trial_id, ALICE)
    [new] = desk.suggest("s1", 1, ALICE)
    assert new.trial.configuration != record.trial.configuration


def test_a_trial_cannot_fail_as_done(desk: StudyDesk) -> None:
    [record] = desk.suggest("s1", 1, ALICE)
    with pytest.raises(InvalidInputError, match="expected failed or infeasible or pruned"):
        desk.fail("s1", record.trial.trial_id, "", state=TrialState.DONE)


def test_the_best_trial_has_the_smallest_objective(desk: StudyDesk) -> None:
    assert desk.best("s1") is None
    records = desk.suggest("s1", 4, ALICE)
    for record, objective in zip(records, (3.0, -1.0, 2.0), strict=False):
        desk.complete("s1", record.trial.trial_id, objective)
    best = desk.best("s1")
    assert best is not None
    assert (best.trial_id, best.objective) == (records[1].trial.trial_id, -1.0)
    counts = desk.standing("buckets").counts
    assert (counts[TrialState.DONE], counts[TrialState.LEASED], counts[TrialState.FAILED]) == (3, 1, 0)


def test_of_equal_trials_the_first_is_best() -> None:
    records = [TrialRecord(Trial({}, TrialState.DONE, 1.0, name), "s1") for name in "ab"]
    assert best_of(records) == records[0]
    assert best_of([]) is None


def test_a_space_that_is_used_up_gives_no_more(desk: StudyDesk) -> None:
    desk.create(replace(STUDY, study_id="s2", name="small", space={"fused": {"kind": "boolean"}}))
    records = desk.suggest("s2", 5, ALICE)
    assert sorted(bool(each.trial.configuration["fused"]) for each in records) == [False, True]
    assert desk.suggest("s2", 1, BOB) == []


def test_the_same_request_again_gets_the_same_trials_as_they_now_stand(desk: StudyDesk) -> None:
    request = RequestKey("k1", "suggest 2")
    records = desk.suggest("s1", 2, ALICE, request=request)
    done = desk.complete("s1", records[0].trial.trial_id, 1.0)
    assert desk.suggest("s1", 2, ALICE, request=request) == [done, records[1]]
    assert len(desk.trials("s1")) == 2
    with pytest.raises(InvalidInputError, match="another request"):
        desk.suggest("s1", 2, ALICE, request=RequestKey("k1", "suggest 3"))


def test_the_same_creation_again_gets_the_study_made_first(desk: StudyDesk) -> None:
    request = RequestKey("k2", "create")
    first = desk.create(replace(STUDY, study_id="s2", name="n"), request=request)
    assert desk.create(replace(STUDY, study_id="s3", name="n"), request=request) == first
    with pytest.raises(ConflictError, match="'n' is taken"):
        desk.create(replace(STUDY, study_id="s4", name="n"))


def test_a_study_over_no_space_is_not_stored(desk: StudyDesk) -> None:
    with pytest.raises(InvalidInputError, match="parameter batch: kind is 'whole'"):
        desk.create(replace(STUDY, study_id="s2", name="n", space={"batch": {"kind": "whole"}}))
    with pytest.raises(NotFoundError, match="'n'"):
        desk.trials("n")


@pytest.mark.parametrize("count", [0, -1, 101])
def test_an_impossible_count_is_refused(desk: StudyDesk, count: int) -> None:
    with pytest.raises(InvalidInputError, match=f"count is {count}, expected 1 to 100"):
        desk.suggest("s1", count, ALICE)


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf"), LEASE_SECONDS_MAX + 1])
def test_an_impossible_lease_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidInputError, match="lease_seconds"):
        Lease("alice", seconds)
    with pytest.raises(InvalidInputError, match="owner"):
        Lease("", 60)


@pytest.mark.parametrize("objective", [float("nan"), float("inf")])
def test_an_objective_that_is_no_number_is_refused(desk: StudyDesk, objective: float) -> None:
    [record] = desk.suggest("s1", 1, ALICE)
    with pytest.raises(InvalidInputError, match="expected a finite number"):
        desk.complete("s1", record.trial.trial_id, objective)
    assert desk.trial("s1", record.trial.trial_id) == record


def test_what_is_not_there_is_not_found(desk: StudyDesk) -> None:
    with pytest.raises(NotFoundError, match="study 's9'"):
        desk.suggest("s9", 1, ALICE)
    with pytest.raises(NotFoundError, match="trial 't9'"):
        desk.complete("s1", "t9", 1.0)


def test_a_full_study_takes_no_more_trials(desk: StudyDesk, catalog: Catalog) -> None:
    with catalog.write() as session:
        for number in range(2):
            trial = Trial({"batch": number + 1, "fused": True}, TrialState.FAILED, None, f"t{number}")
            session.studies.add_trial("s1", trial, owner="x", lease_expires_ns=0)
    small = StudyDesk(catalog, trials_max=2)
    with pytest.raises(InvalidInputError, match="has 2 trials, expected at most 2"):
        small.suggest("s1", 1, ALICE)


def test_two_who_ask_at_once_never_get_the_same_trial(desk: StudyDesk) -> None:
    got: list[str] = []
    configurations: list[str] = []

    def ask() -> None:
        owner = Lease(str(uuid.uuid4()), 60)
        for _ in range(3):
            for record in desk.suggest("s1", 2, owner):
                got.append(record.trial.trial_id)
                configurations.append(str(record.trial.configuration))
                assert record.owner == owner.owner

    in_threads(ask, 6)
    assert len(got) == len(set(got)) == len(set(configurations)) == 36


def test_of_two_who_complete_at_once_with_other_values_one_is_refused(desk: StudyDesk) -> None:
    [record] = desk.suggest("s1", 1, ALICE)
    refused: list[float] = []
    values = iter((1.0, 2.0, 3.0, 4.0))

    def complete() -> None:
        value = next(values)
        try:
            desk.complete("s1", record.trial.trial_id, value)
        except ConflictError:
            refused.append(value)

    in_threads(complete, 4)
    stored = desk.trial("s1", record.trial.trial_id).trial.objective
    assert sorted([*refused, stored or 0.0]) == [1.0, 2.0, 3.0, 4.0]


def in_threads(work: Callable[[], None], count: int) -> None:
    faults: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - told to the test below
            faults.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert faults == []
