"""Neighbours of the runs of a store."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.models.interference.stored import HOUR_NS, neighbourhood, run

from crosswind.cli.text.output import plain
from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.answers.effects import NeighbourKind, NeighbourScope
from crosswind.data.schema.errors import InvalidInputError, MalformedError
from crosswind.data.schema.job import Job
from crosswind.data.schema.run import RunState
from crosswind.data.store.store import Store
from crosswind.models.interference.interference import interference
from crosswind.models.interference.presence import presences


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def test_the_user_whose_jobs_slow_runs_down_is_blamed_by_pseudonym(store: Store) -> None:
    neighbourhood(store)
    answer = interference(store, "bert", "lab")
    [first] = answer.blamed
    with store.catalog.read() as session:
        assert session.people.names([first.candidate.name]) == {first.candidate.name: "mallory"}
    assert first.slowdown_low_ratio < 1.2 < first.slowdown_high_ratio
    assert (answer.runs, answer.compared_runs, answer.seen[NeighbourKind.USER]) == (60, 60, 2)
    text = json.dumps(plain(answer))
    for secret in ("mallory", "alice", "mallorys-job"):
        assert secret not in text


def test_neighbours_on_another_node_count_where_the_switch_is_known(store: Store) -> None:
    neighbourhood(store, node="n2")
    alone = interference(store)
    assert (alone.suspects, alone.accompanied_runs) == ((), 0)
    assert any("no switches or racks are known" in warning for warning in alone.warnings)
    answer = interference(store, groups={"n1": "s1", "n2": "s1"})
    assert [suspect.candidate.scope for suspect in answer.blamed] == [NeighbourScope.GROUP]
    assert interference(store, groups={"n1": "s1", "n2": "s2"}).suspects == ()


def test_a_job_and_its_runs_are_one_presence(store: Store) -> None:
    store.jobs.put(Job("lab", "7", user="ada", nodes=("n1",), started_ns=0, ended_ns=10 * HOUR_NS))
    with store.catalog.write() as session:
        session.runs.merge(run(1, job_id="7"))
        session.runs.merge(run(2, job_id="8"))
    present = presences(store, "lab", 0, 100 * HOUR_NS)
    assert present["user"].notna().sum() == 1
    assert sorted(present["job"].dropna()) == ["7", "8"]
    assert sorted(present["workload"].dropna()) == ["bert", "bert"]


def test_jobs_of_other_systems_and_of_other_times_are_not_there(store: Store) -> None:
    kept = Job("lab", "1", user="ada", nodes=("n1",), started_ns=5, ended_ns=None)
    other = Job("else", "2", user="ada", nodes=("n1",), started_ns=5, ended_ns=9)
    before = Job("lab", "3", user="ada", nodes=("n1",), started_ns=1, ended_ns=4)
    waiting = Job("lab", "4", user="ada", state="PENDING")
    store.jobs.put(kept, other, before, waiting)
    present = presences(store, "lab", 4, 100)
    assert present["job_id"].tolist() == ["1"]
    assert present["end_ns"].tolist() == [2**63 - 1]


def test_a_lost_run_is_not_there_for_ever_but_a_running_one_is_still(store: Store) -> None:
    with store.catalog.write() as session:
        session.runs.merge(run(1, run_id="lost", state=RunState.LOST, ended_ns=None))
        session.runs.merge(run(1, run_id="running", state=RunState.RUNNING, ended_ns=None))
    assert presences(store, "lab", 90 * HOUR_NS, 100 * HOUR_NS)["run_id"].tolist() == ["running"]


def test_few_runs_abstain(store: Store) -> None:
    with store.catalog.write() as session:
        for number in range(12):
            session.runs.merge(run(number))
    answer = interference(store)
    assert answer.suspects == ()
    assert "12 of 12 completed runs can be compared, expected 20 or more" in answer.warnings[0]


def test_runs_without_nodes_abstain(store: Store) -> None:
    with store.catalog.write() as session:
        for number in range(30):
            session.runs.merge(run(number, nodes=()))
    answer = interference(store)
    assert answer.suspects == ()
    assert answer.warnings[0] == "30 of 30 runs have no nodes, so nobody knows who was beside them"


def test_nobody_beside_is_said(store: Store) -> None:
    with store.catalog.write() as session:
        for number in range(30):
            session.runs.merge(run(number))
    answer = interference(store)
    assert (answer.suspects, answer.accompanied_runs) == ((), 0)
    assert "nobody was beside any run, as far as runs and jobs are stored" in answer.warnings
    assert any("no user is known" in warning for warning in answer.warnings)


def test_a_neighbour_of_every_run_is_too_few_without(store: Store) -> None:
    with store.catalog.write() as session:
        for number in range(30):
            session.runs.merge(run(number))
    store.jobs.put(Job("lab", "1", user="ada", nodes=("n1",), started_ns=1, ended_ns=10**6 * HOUR_NS))
    answer = interference(store)
    assert (answer.suspects, answer.accompanied_runs, answer.candidates) == ((), 30, 0)
    assert "nobody was beside 5 runs or more, while 5 others had them not beside" in answer.warnings


def test_failed_neighbours_count_as_neighbours(store: Store) -> None:
    with store.catalog.write() as session:
        for number in range(30):
            session.runs.merge(run(number, 1 + number % 7 / 100))
            if number % 3 == 0:
                session.runs.merge(run(number, run_id=f"x{number}", workload="crash", state=RunState.FAILED))
    answer = interference(store)
    assert [(suspect.candidate.name, suspect.exposed_runs) for suspect in answer.suspects] == [("crash", 10)]


def test_runs_that_all_take_the_same_time_say_nothing_of_neighbours(store: Store) -> None:
    neighbourhood(store)
    with store.catalog.write() as session:
        for number in range(60):
            began = run(number).started_ns or 0
            session.runs.merge(run(number, 10, run_id=f"same{number}", workload="even", started_ns=began))
    answer = interference(store, "even")
    assert answer.suspects == ()
    assert "no run differs from its cohort's others" in answer.warnings[-1]


def test_an_unknown_workload_is_refused(store: Store) -> None:
    neighbourhood(store)
    with pytest.raises(InvalidInputError, match="workload 'gpt': no run of it has completed on system 'lab'"):
        interference(store, "gpt", "lab")


def test_a_damaged_lake_is_named(store: Store) -> None:
    neighbourhood(store)
    next(store.lake.root.glob("set=job/date=*/part-*.parquet")).write_bytes(b"PAR1 nothing")
    with pytest.raises(MalformedError, match="part-"):
        interference(store)


@pytest.mark.thorough
def test_neighbours_in_the_lab_are_found(store: Store) -> None:
    """30 runs had a real training job beside them, which has a run of its own."""
    load_lab_samples(store)
    answer = interference(store)
    assert (answer.compared_runs, answer.accompanied_runs) == (437, 60)
    [blamed] = answer.blamed
    assert (blamed.candidate.kind, blamed.candidate.name) == (NeighbourKind.WORKLOAD, "image-classifier")
    assert 1.05 < blamed.slowdown_low_ratio < blamed.slowdown_ratio < 1.3
    assert np.isfinite([suspect.p for suspect in answer.suspects]).all()
