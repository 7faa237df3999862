from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import pytest
from tests.models.tuner.service.growth_contract import GrowthContract
from tests.models.tuner.service.life_contract import LifeContract
from tests.models.tuner.service.reports_contract import ReportsContract
from tests.models.tuner.service.service_contract import ALICE, BOB, SECOND, STUDY, StudyServiceContract
from tests.models.tuner.service.state_contract import StateContract

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.report import Report
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.trial import Configuration, Trial, TrialRecord, TrialState
from crosswind.models.tuner.service.catalog import CatalogStudyService
from crosswind.models.tuner.service.service import LEASE_SECONDS_MAX, Lease, Limits
from crosswind.models.tuner.space.space import Space


class Clock:
    """The server's clock, set by the test."""

    ns = 1_000 * SECOND

    def __call__(self) -> int:
        return self.ns

    def pass_seconds(self, seconds: float) -> None:
        self.ns += round(seconds * SECOND)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service(catalog: Catalog, clock: Clock) -> CatalogStudyService:
    service = CatalogStudyService(catalog, clock=clock)
    service.create(STUDY)
    return service


class TestCatalogStudyService(StudyServiceContract, ReportsContract, GrowthContract, LifeContract, StateContract):
    """The promises of every service, in SQLite and in PostgreSQL."""


def test_suggested_trials_are_leased_until_the_servers_clock_says_so(
    service: CatalogStudyService, clock: Clock
) -> None:
    records = service.suggest("s1", 3, ALICE)
    assert {(record.trial.state, record.owner, record.lease_expires_ns) for record in records} == {
        (TrialState.LEASED, "alice", clock.ns + 60 * SECOND)
    }
    assert len({str(record.trial.configuration) for record in records}) == 3
    assert sorted(records, key=lambda record: record.trial.trial_id) == service.trials("s1")


def test_the_trial_of_a_job_that_died_goes_to_the_next_at_once(catalog: Catalog) -> None:
    lookups: list[set[str]] = []

    def dead(jobs: set[str]) -> set[str]:
        lookups.append(set(jobs))
        return {"7_1", "99"}

    service = CatalogStudyService(catalog, dead_jobs=dead)  # type: ignore[arg-type]
    service.create(STUDY)
    [lost], [held] = (service.suggest("s1", 1, Lease(f"n{job}", 60, job)) for job in ("7_1", "7_2"))
    assert (held.trial.trial_id == lost.trial.trial_id, lookups) == (True, [{"7_1"}])
    [new] = service.suggest("s1", 1, BOB)
    assert (new.trial.trial_id != lost.trial.trial_id, lookups[1:]) == (True, [{"7_2"}])


def test_a_request_key_of_another_request_is_refused(service: CatalogStudyService) -> None:
    service.suggest("s1", 2, ALICE, request=RequestKey("k1", "suggest 2"))
    with pytest.raises(InvalidInputError, match="another request"):
        service.suggest("s1", 2, ALICE, request=RequestKey("k1", "suggest 3"))


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf"), LEASE_SECONDS_MAX + 1])
def test_an_impossible_lease_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidInputError, match="lease_seconds"):
        Lease("alice", seconds)
    with pytest.raises(InvalidInputError, match="owner"):
        Lease("", 60)
    with pytest.raises(InvalidInputError, match="job"):
        Lease("alice", 60, "")


def test_a_full_study_takes_no_more_trials(service: CatalogStudyService, catalog: Catalog) -> None:
    with catalog.write() as session:
        for number in range(2):
            trial = Trial({"batch": number + 1, "fused": True}, TrialState.FAILED, None, f"t{number}")
            session.leases.add(TrialRecord(trial, "s1", owner="x"))
    small = CatalogStudyService(catalog, limits=Limits(trials=2))
    with pytest.raises(InvalidInputError, match="has 2 trials, expected at most 2"):
        small.suggest("s1", 1, ALICE)


class Slow:
    """A tuner that looks at the catalog, and writes to it, while it thinks."""

    name = "slow"

    def __init__(self, catalog: Catalog, study: str) -> None:
        self.catalog, self.study, self.thought = catalog, study, 0

    def __call__(self, space: Space, seed: int) -> "Slow":
        self._add()
        return self

    def observe(self, trials: Sequence[Trial]) -> None:
        self._add()

    def suggest(self, count: int) -> list[Configuration]:
        self._add()
        return [{"batch": self.thought + offset, "fused": True} for offset in range(count)]

    def _add(self) -> None:
        """A write by somebody else; with the database's one lock taken it would wait until it failed."""
        self.thought += 1
        with self.catalog.write() as session:
            session.studies.add(replace(STUDY, study_id=f"{self.study}-{self.thought}", name=f"other {self.thought}"))


def test_nobody_who_writes_waits_for_a_tuner(catalog: Catalog) -> None:
    tuner = Slow(catalog, "x")
    service = CatalogStudyService(catalog, make_tuner=tuner)
    service.create(STUDY)
    assert len(service.suggest("s1", 2, ALICE)) == 2
    assert tuner.thought == 3


def test_a_report_waits_for_who_deletes_the_study(service: CatalogStudyService, catalog: Catalog) -> None:
    [record] = service.suggest("s1", 1, ALICE)
    with ThreadPoolExecutor(1) as pool:
        with catalog.write() as session:
            session.studies.lock("s1")
            late = pool.submit(service.report, "s1", record.trial_id, [Report(1, 0.5)])
            with suppress(TimeoutError):
                late.result(timeout=0.3)
            session.leases.remove("s1")
            session.studies.remove("s1")
        with pytest.raises(NotFoundError):
            late.result(timeout=30)


class Overtaking:
    """A tuner in whose way somebody else gets, once it has thought."""

    name = "overtaking"

    def __init__(self, other: CatalogStudyService) -> None:
        self.other, self.rival, self.taken = other, 0, set[object]()

    def __call__(self, space: Space, seed: int) -> "Overtaking":
        return self

    def observe(self, trials: Sequence[Trial]) -> None:
        self.taken |= {trial.configuration["batch"] for trial in trials}

    def suggest(self, count: int) -> list[Configuration]:
        free = [batch for batch in range(1, 200) if batch not in self.taken][:count]
        if not self.rival:
            self.rival += 1
            self.other.suggest("s1", 1, BOB)
        return [{"batch": batch, "fused": True} for batch in free]


def test_what_another_process_began_meanwhile_is_not_begun_again(catalog: Catalog) -> None:
    class First(Overtaking):
        def suggest(self, count: int) -> list[Configuration]:
            return [{"batch": 1, "fused": True}]

    first = First(CatalogStudyService(catalog))
    tuner = Overtaking(CatalogStudyService(catalog, make_tuner=lambda space, seed: first))
    service = CatalogStudyService(catalog, make_tuner=tuner)
    service.create(STUDY)
    service.suggest("s1", 2, ALICE)
    assert sorted(float(record.trial.configuration["batch"]) for record in service.trials("s1")) == [1, 2, 3]


def test_who_is_overtaken_on_a_trial_given_back_gets_a_new_one(catalog: Catalog) -> None:
    other = CatalogStudyService(catalog)

    service = CatalogStudyService(catalog)
    service.create(STUDY)
    [free] = service.suggest("s1", 1, ALICE)
    service.release("s1", free.trial.trial_id)
    times = iter(range(1, 1000))

    def clock() -> int:
        if next(times) == 1:  # between the look and the lock
            assert other.suggest("s1", 1, BOB)[0].trial == replace(free.trial, state=TrialState.LEASED)
        return 1_000 * SECOND

    late = CatalogStudyService(catalog, clock=clock)
    [new] = late.suggest("s1", 1, Lease("carol", 60))
    assert new.trial.configuration != free.trial.configuration
    assert len(late.trials("s1")) == 2
