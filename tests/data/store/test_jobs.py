import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from crosswind.data.schema.job import Job
from crosswind.data.schema.part import Part
from crosswind.data.store.jobs import ANY_JOB, JobFilter
from crosswind.data.store.store import Store

FULL = Job(
    system="a",
    job_id="7_1",
    name="näme | with 'quotes'",
    user="ada",
    account="weather",
    partition="gpu",
    state="FAILED",
    exit_code=3,
    signal=9,
    nodes=("n1", "n2"),
    node_count=2,
    cpu_count=8,
    submitted_ns=1,
    started_ns=2,
    ended_ns=3,
    elapsed_seconds=0.5,
    energy_joules=7.5,
    fields={"QOS": "normal"},
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def test_nothing_is_known_of_no_job(store: Store) -> None:
    assert store.jobs.find(limit=5) == [] == list(store.jobs.all())
    assert store.jobs.get("a", "1") is None
    assert store.jobs.count() == 0


def test_a_job_comes_back_as_it_was_stored(store: Store) -> None:
    bare = Job("a", "8")
    store.jobs.put(FULL, bare)
    assert store.jobs.get("a", "7_1") == FULL
    assert store.jobs.get("a", "8") == bare


def test_the_last_report_of_a_job_holds(store: Store) -> None:
    store.jobs.put(replace(FULL, state="RUNNING", ended_ns=None), replace(FULL, state="COMPLETED"))
    store.jobs.put(FULL)
    assert [job.state for job in store.jobs.all()] == ["FAILED"]
    assert store.jobs.count() == 1


def test_a_list_of_the_queue_stored_after_the_account_takes_nothing_from_it(store: Store) -> None:
    queued = Job("a", "7_1", state="RUNNING", started_ns=FULL.started_ns, nodes=("n1", "n2"), partition="fat")
    for accounts in ((FULL, queued), (queued, FULL)):
        for account in accounts:
            store.jobs.put(account)
        assert store.jobs.get("a", "7_1") == FULL
        assert store.jobs.find(limit=5) == [FULL]


POOR = Job("a", "7_1", "", state="RUNNING", nodes=("n1", "n2"), elapsed_seconds=0.25)  # a line of squeue's own table


@pytest.mark.parametrize("poor", [POOR, replace(POOR, state="COMPLETING"), replace(POOR, nodes=(), state="")])
def test_an_account_without_a_start_is_one_of_the_newest_start(store: Store, poor: Job) -> None:
    for account in (poor, FULL, poor):
        store.jobs.put(account)
    assert store.jobs.get("a", "7_1") == FULL
    assert store.jobs.find(limit=5) == [FULL] == store.jobs.named("7_1") == list(store.jobs.all())


def test_of_an_account_without_a_start_holds_what_the_others_do_not_know(store: Store) -> None:
    running = replace(FULL, state="RUNNING", ended_ns=None, nodes=(), cpu_count=None)
    store.jobs.put(running, Job("a", "7_1", state="SUSPENDED", nodes=("n1", "n2"), cpu_count=8))
    assert store.jobs.get("a", "7_1") == replace(FULL, state="SUSPENDED", ended_ns=None, exit_code=None, signal=None)


def test_how_a_job_ended_is_taken_from_one_account(store: Store) -> None:
    failed = replace(FULL, state="TIMEOUT", exit_code=None, signal=None, ended_ns=9, name="", nodes=())
    store.jobs.put(FULL, failed, replace(FULL, state="RUNNING", ended_ns=None, exit_code=7))
    assert store.jobs.get("a", "7_1") == replace(failed, name=FULL.name, nodes=FULL.nodes)


def test_a_job_that_began_again_keeps_nothing_of_its_earlier_start(store: Store) -> None:
    again = Job("a", "7_1", state="RUNNING", started_ns=50, nodes=("n3",))
    store.jobs.put(FULL, again)
    assert store.jobs.get("a", "7_1") == again
    assert store.jobs.find(limit=5) == [again]


def test_an_older_export_stored_later_brings_back_no_earlier_start(store: Store) -> None:
    again = Job("a", "7_1", state="RUNNING", started_ns=50, nodes=("n3",))
    for account in (again, FULL):
        store.jobs.put(account)
    assert store.jobs.get("a", "7_1") == again
    assert store.jobs.find(limit=5) == [again] == list(store.jobs.all())


def test_a_job_that_waits_again_after_its_end_is_of_a_start_to_come(store: Store) -> None:
    waiting, poor = Job("a", "7_1", state="PENDING", partition="fat"), Job("a", "7_1", state="RUNNING", nodes=("n9",))
    store.jobs.put(waiting, FULL)
    assert store.jobs.get("a", "7_1") == FULL  # it waited before
    store.jobs.put(waiting)
    assert store.jobs.get("a", "7_1") == waiting
    store.jobs.put(poor)
    assert store.jobs.get("a", "7_1") == replace(poor, partition="fat")
    assert store.jobs.find(limit=5) == [replace(poor, partition="fat")]
    store.jobs.put(replace(poor, started_ns=70))
    assert store.jobs.get("a", "7_1") == replace(poor, started_ns=70)


def test_a_job_that_was_put_back_while_it_ran_waits(store: Store) -> None:
    store.jobs.put(replace(FULL, state="RUNNING", ended_ns=None), Job("a", "7_1", state="REQUEUED"))
    assert store.jobs.get("a", "7_1") == Job("a", "7_1", state="REQUEUED")


def test_a_cancellation_within_a_run_that_ended_then_tells_why(store: Store) -> None:
    asked = Job("a", "7_1", state="CANCELLED", ended_ns=3)
    for accounts in ((asked, FULL), (FULL, asked)):
        for account in accounts:
            store.jobs.put(account)
        assert store.jobs.get("a", "7_1") == replace(FULL, state="CANCELLED")


@pytest.mark.parametrize("ended_ns", [1, 4, None])
def test_a_cancellation_before_or_after_a_run_says_nothing_of_it(store: Store, ended_ns: int | None) -> None:
    asked = Job("a", "7_1", state="CANCELLED", ended_ns=ended_ns)
    for account in (asked, FULL, asked):
        store.jobs.put(account)
    assert store.jobs.get("a", "7_1") == FULL


def test_jobs_are_paged_newest_first_over_systems(store: Store) -> None:
    jobs = [Job("a", "1", started_ns=3), Job("b", "1", started_ns=3), Job("a", "2", nodes=("n1",))]
    store.jobs.put(*jobs, replace(jobs[0], cpu_count=1))
    jobs[0] = replace(jobs[0], cpu_count=1)
    assert store.jobs.find(limit=2) == [jobs[1], jobs[0]]
    assert store.jobs.find(before=(3, "a", "1"), limit=2) == [jobs[2]]
    assert store.jobs.named("1") == jobs[:2]


def test_a_page_holds_what_jobs_are_now_even_of_jobs_that_were_reported_often(store: Store) -> None:
    started = [Job("a", str(number), started_ns=1000 + number) for number in range(40)]
    for _ in range(6):  # the first accounts of a page are all of two jobs, which stand elsewhere now
        store.jobs.put(*started)
    waiting = [Job("a", job.job_id, state="PENDING") for job in started[20:]]
    store.jobs.put(*waiting)
    assert store.jobs.find(limit=3) == [started[19], started[18], started[17]]
    assert store.jobs.find(before=(1017, "a", "17"), limit=19)[-2:] == [waiting[19], waiting[18]]
    by_id = sorted(waiting, key=lambda job: job.job_id, reverse=True)
    assert store.jobs.find(limit=100) == [*started[19::-1], *by_id]


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (2, 3))])
def test_pages_hold_every_job_once_whatever_was_reported(store: Store, seed: int) -> None:
    choose = random.Random(seed).choice
    for _ in range(30):
        state, ended = choose(["", "PENDING", "RUNNING", "CANCELLED", "FAILED"]), choose([None, None, 3, 7])
        store.jobs.put(Job(choose("ab"), choose("1234"), state=state, started_ns=choose([None, 1, 5]), ended_ns=ended))
    paged, before = [], None
    while page := store.jobs.find(before=before, limit=choose([1, 2])):
        paged += page
        before = page[-1].started_ns or 0, page[-1].system, page[-1].job_id
    assert paged[::-1] == list(store.jobs.all())
    assert len({(job.system, job.job_id) for job in paged}) == len(paged) == store.jobs.count()
    assert [store.jobs.get(job.system, job.job_id) for job in paged] == paged
    rising, after = [], None
    while page := store.jobs.part(ANY_JOB, Part(2, after=after)):
        rising += page
        after = page[-1].started_ns, page[-1].system, page[-1].job_id
    assert rising == paged[::-1]
    bounds = JobFilter(since_ns=1, until_ns=5)
    assert store.jobs.find(bounds, limit=50) == [job for job in paged if 1 <= (job.started_ns or 0) < 5]


def test_jobs_of_a_name_are_put_together_of_all_their_accounts(store: Store) -> None:
    store.jobs.put(FULL, replace(POOR, job_id="8"), replace(FULL, job_id="9", started_ns=9), POOR)
    assert store.jobs.of_name(FULL.name, system="a", limit=5) == [FULL, replace(FULL, job_id="9", started_ns=9)]
    assert store.jobs.of_name(FULL.name, system="a", limit=1) == [replace(FULL, job_id="9", started_ns=9)]


def test_users_stand_in_the_lake_by_pseudonyms(store: Store) -> None:
    store.jobs.put(FULL, replace(FULL, job_id="8", user="bob"), replace(FULL, job_id="9", user=None))
    stored = store.lake.frame('select job_id, "user" from job order by job_id').set_index("job_id")["user"]
    assert all(name.startswith("u-") for name in stored[:2])
    assert stored["7_1"] != stored["8"]
    assert list(stored.isna()) == [False, False, True]
    assert not any(b"ada" in path.read_bytes() for path in store.home.rglob("*.parquet"))
    assert [job.user for job in store.jobs.find(limit=9)] == [None, "bob", "ada"]


@pytest.mark.parametrize(
    ("wanted", "job_ids"),
    [
        (JobFilter(name="train"), ["3", "1"]),
        (JobFilter(user="ada"), ["2", "1"]),
        (JobFilter(user="nobody"), []),
        (JobFilter(state="FAILED"), ["3"]),
        (JobFilter(name="train", user="ada"), ["1"]),
        (JobFilter(system="alps"), []),
        (JobFilter(), ["3", "2", "1"]),
        (JobFilter(job_id="2", since_ns=20, until_ns=21), ["2"]),
    ],
)
def test_jobs_are_narrowed_by_what_they_are_now(store: Store, wanted: JobFilter, job_ids: list[str]) -> None:
    store.jobs.put(Job("lab", "3", "train", "bob", state="RUNNING", started_ns=30))
    store.jobs.put(
        Job("lab", "1", "train", "ada", state="COMPLETED", started_ns=10, ended_ns=20),
        Job("lab", "2", "relax", "ada", state="RUNNING", started_ns=20),
        Job("lab", "3", state="FAILED", started_ns=30, ended_ns=40),  # without its name and user
    )
    assert [job.job_id for job in store.jobs.find(wanted, limit=5)] == job_ids
    assert [job.job_id for job in store.jobs.find(wanted, limit=1)] == job_ids[:1]
    assert store.jobs.find(JobFilter(state="RUNNING"), limit=1) == [store.jobs.get("lab", "2")]


def test_narrowed_jobs_are_paged(store: Store) -> None:
    store.jobs.put(*[Job("lab", str(number), "ab"[number % 2], started_ns=number) for number in range(1, 9)])
    wanted, seen, before = JobFilter(name="a"), [], None
    while page := store.jobs.find(wanted, before=before, limit=3):
        seen += [job.job_id for job in page]
        before = (page[-1].started_ns or 0, page[-1].system, page[-1].job_id)
    assert seen == ["8", "6", "4", "2"]
