from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from crosswind.data.catalog.database import open_database, sqlite_url
from crosswind.data.job import Job
from crosswind.data.store import Store

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


def test_a_job_comes_back_as_it_was_told(store: Store) -> None:
    bare = Job("a", "8")
    store.jobs.put(FULL, bare)
    assert store.jobs.get("a", "7_1") == FULL
    assert store.jobs.get("a", "8") == bare


def test_what_was_told_last_of_a_job_holds(store: Store) -> None:
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


def test_a_job_that_began_again_is_what_is_told_of_that(store: Store) -> None:
    again = Job("a", "7_1", state="RUNNING", started_ns=50, nodes=("n3",))
    store.jobs.put(FULL, again)
    assert store.jobs.get("a", "7_1") == again
    assert store.jobs.find(limit=5) == [again]


def test_jobs_are_paged_newest_first_over_systems(store: Store) -> None:
    jobs = [Job("a", "1", started_ns=3), Job("b", "1", started_ns=3), Job("a", "2", nodes=("n1",))]
    store.jobs.put(*jobs, replace(jobs[0], state="RUNNING"), jobs[0])
    assert store.jobs.find(limit=2) == [jobs[1], jobs[0]]
    assert store.jobs.find(before=(3, "a", "1"), limit=2) == [jobs[2]]
    assert store.jobs.named("1") == jobs[:2]


def test_a_page_holds_what_was_told_last_even_of_jobs_that_were_told_often(store: Store) -> None:
    started = [Job("a", str(number), started_ns=1000 + number) for number in range(40)]
    for _ in range(6):  # the first accounts of a page are all of two jobs, of which the last ones are elsewhere
        store.jobs.put(*started)
    moved = [replace(job, started_ns=5) for job in started[20:]]
    store.jobs.put(*moved)
    assert store.jobs.find(limit=3) == [started[19], started[18], started[17]]
    assert store.jobs.find(before=(1017, "a", "17"), limit=19)[-2:] == [moved[19], moved[18]]
    assert store.jobs.find(limit=100) == [*started[19::-1], *sorted(moved, key=lambda job: job.job_id, reverse=True)]


def test_users_stand_in_the_lake_by_pseudonyms(store: Store) -> None:
    store.jobs.put(FULL, replace(FULL, job_id="8", user="bob"), replace(FULL, job_id="9", user=None))
    stored = store.lake.frame('select job_id, "user" from job order by job_id').set_index("job_id")["user"]
    assert all(name.startswith("u-") for name in stored[:2])
    assert stored["7_1"] != stored["8"]
    assert list(stored.isna()) == [False, False, True]
    assert not any(b"ada" in path.read_bytes() for path in store.home.rglob("*.parquet"))
    assert [job.user for job in store.jobs.find(limit=9)] == [None, "bob", "ada"]


def test_jobs_that_an_earlier_version_kept_in_the_catalog_move_to_the_lake(tmp_path: Path) -> None:
    home = tmp_path / "store"
    home.mkdir()
    engine = open_database(sqlite_url(home / "catalog.sqlite"))
    with engine.begin() as connection:
        connection.execute(text("create table jobs_in_catalog as select 'a' as system, '7_1' as job_id, 'x' as name"))
        for name in ("user", "account", "partition", "exit_code", "signal", "node_count", "cpu_count", "submitted_ns"):
            connection.execute(text(f'alter table jobs_in_catalog add column "{name}"'))
        for name in ("started_ns", "ended_ns", "elapsed_seconds", "energy_joules", "state", "nodes", "fields"):
            connection.execute(text(f'alter table jobs_in_catalog add column "{name}"'))
        connection.execute(
            text(
                """update jobs_in_catalog set state = 'FAILED', nodes = '["n1"]', fields = '{"Q": "x"}', user = 'ada'"""
            )
        )
    engine.dispose()
    for _ in range(2):
        with Store.open(home) as store:
            [job] = store.jobs.all()
    assert job == Job("a", "7_1", "x", "ada", state="FAILED", nodes=("n1",), fields={"Q": "x"})
