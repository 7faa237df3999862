from dataclasses import replace
from pathlib import Path

import pytest

from crosswind.data.schema.job import Job
from crosswind.data.store.job_changes import put_changed
from crosswind.data.store.jobs import job_table
from crosswind.data.store.store import Store

ENDED = Job("alps", "1", "train", "ada", state="COMPLETED", exit_code=0, nodes=("n1",), started_ns=5, ended_ns=9)
RUNNING = Job("alps", "2", state="RUNNING", started_ns=5, elapsed_seconds=3.0, fields={"TotalCPU": "00:01"})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path)


def put(store: Store, *jobs: Job) -> int:
    return put_changed(store, job_table(jobs, reported_ns=0))


def accounts(store: Store) -> int:
    return int(store.lake.frame("select count(*) as n from job").n.iloc[0])


def test_the_same_account_is_stored_once(store: Store) -> None:
    assert [put(store, ENDED, RUNNING), put(store, RUNNING, ENDED)] == [2, 0]
    assert accounts(store) == 2
    assert store.jobs.get("alps", "1") == ENDED


@pytest.mark.parametrize(
    "change",
    [
        {"state": "FAILED"},
        {"exit_code": 1},
        {"ended_ns": 10},
        {"user": "bob"},
        {"nodes": ("n1", "n2")},
        {"energy_joules": 7.0},
        {"fields": {"QOS": "high"}},
        {"elapsed_seconds": 4.0},
    ],
)
def test_whatever_changed_of_an_ended_job_is_stored(store: Store, change: dict[str, object]) -> None:
    changed = replace(ENDED, **change)
    assert [put(store, ENDED), put(store, changed), put(store, changed)] == [1, 1, 0]
    assert store.jobs.get("alps", "1") == changed


def test_that_a_running_job_runs_on_is_no_news(store: Store) -> None:
    later = replace(RUNNING, elapsed_seconds=63.0, fields={"TotalCPU": "00:59"})
    assert [put(store, RUNNING), put(store, later)] == [1, 0]
    ended = replace(later, state="COMPLETED", ended_ns=70)
    assert put(store, ended) == 1
    assert store.jobs.get("alps", "2") == ended


def test_of_two_accounts_of_a_job_the_last_one_counts(store: Store) -> None:
    again = replace(ENDED, state="RUNNING", started_ns=20, ended_ns=None, exit_code=None)
    assert put(store, ENDED, again) == 1
    assert store.jobs.get("alps", "1") == again
    assert put(store, ENDED, again) == 0


@pytest.mark.parametrize(
    "poorer",
    [
        replace(ENDED, state="RUNNING", ended_ns=None, exit_code=None, nodes=()),
        Job("alps", "1", state="COMPLETING"),
        replace(ENDED, started_ns=1, ended_ns=2, state="NODE_FAIL"),
    ],
)
def test_an_account_that_makes_no_other_job_of_it_is_not_stored(store: Store, poorer: Job) -> None:
    assert [put(store, ENDED), put(store, poorer), put(store, ENDED)] == [1, 0, 0]
    assert store.jobs.get("alps", "1") == ENDED
    assert accounts(store) == 1


def test_a_job_that_waits_again_is_news_once(store: Store) -> None:
    waiting = Job("alps", "1", state="PENDING")
    assert [put(store, ENDED), put(store, waiting), put(store, waiting)] == [1, 1, 0]
    assert store.jobs.get("alps", "1") == waiting


def test_only_what_is_known_makes_a_job_another_one(store: Store) -> None:
    with_nodes = replace(RUNNING, nodes=("n1",))
    assert [put(store, RUNNING), put(store, with_nodes), put(store, RUNNING)] == [1, 1, 0]
    assert store.jobs.get("alps", "2") == with_nodes


def test_the_same_id_on_another_system_is_another_job(store: Store) -> None:
    assert put(store, ENDED, replace(ENDED, system="eiger")) == 2


def test_users_stand_in_the_lake_by_pseudonyms(store: Store) -> None:
    put(store, ENDED)
    [name] = store.lake.frame("select user from job").user
    assert name.startswith("u-")
