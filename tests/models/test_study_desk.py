import pytest
from tests.models.tuner.desks_contract import ALICE, BOB, SECOND, STUDY, DeskContract

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.requests import RequestKey
from crosswind.data.errors import InvalidInputError
from crosswind.data.trial import Trial, TrialRecord, TrialState
from crosswind.models.tuner.desk import LEASE_SECONDS_MAX, Lease, Limits, StudyDesk, best_of


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


class TestStudyDesk(DeskContract):
    """The promises of every desk, in SQLite and in PostgreSQL."""


def test_suggested_trials_are_leased_until_the_servers_clock_says_so(desk: StudyDesk, clock: Clock) -> None:
    records = desk.suggest("s1", 3, ALICE)
    assert {(each.trial.state, each.owner, each.lease_expires_ns) for each in records} == {
        (TrialState.LEASED, "alice", clock.ns + 60 * SECOND)
    }
    assert len({str(each.trial.configuration) for each in records}) == 3
    assert sorted(records, key=lambda each: each.trial.trial_id) == desk.trials("s1")


def test_the_trial_of_a_job_that_died_goes_to_the_next_at_once(catalog: Catalog) -> None:
    asked: list[set[str]] = []

    def dead(jobs: set[str]) -> set[str]:
        asked.append(set(jobs))
        return {"7_1", "99"}

    desk = StudyDesk(catalog, dead_jobs=dead)  # type: ignore[arg-type]
    desk.create(STUDY)
    [lost], [held] = (desk.suggest("s1", 1, Lease(f"n{job}", 60, job)) for job in ("7_1", "7_2"))
    assert (held.trial.trial_id == lost.trial.trial_id, asked) == (True, [{"7_1"}])
    [new] = desk.suggest("s1", 1, BOB)
    assert (new.trial.trial_id != lost.trial.trial_id, asked[1:]) == (True, [{"7_2"}])


def test_of_equal_trials_the_first_is_best() -> None:
    records = [TrialRecord(Trial({}, TrialState.DONE, 1.0, name), "s1") for name in "ab"]
    assert best_of(records) == records[0]
    assert best_of([]) is None


def test_a_request_key_of_another_request_is_refused(desk: StudyDesk) -> None:
    desk.suggest("s1", 2, ALICE, request=RequestKey("k1", "suggest 2"))
    with pytest.raises(InvalidInputError, match="another request"):
        desk.suggest("s1", 2, ALICE, request=RequestKey("k1", "suggest 3"))


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf"), LEASE_SECONDS_MAX + 1])
def test_an_impossible_lease_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidInputError, match="lease_seconds"):
        Lease("alice", seconds)
    with pytest.raises(InvalidInputError, match="owner"):
        Lease("", 60)
    with pytest.raises(InvalidInputError, match="job"):
        Lease("alice", 60, "")


def test_a_full_study_takes_no_more_trials(desk: StudyDesk, catalog: Catalog) -> None:
    with catalog.write() as session:
        for number in range(2):
            trial = Trial({"batch": number + 1, "fused": True}, TrialState.FAILED, None, f"t{number}")
            session.studies.add_trial("s1", trial, owner="x", lease_expires_ns=0)
    small = StudyDesk(catalog, limits=Limits(trials=2))
    with pytest.raises(InvalidInputError, match="has 2 trials, expected at most 2"):
        small.suggest("s1", 1, ALICE)
