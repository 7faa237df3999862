from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.job import Job
from crosswind.data.schema.metric import Column, Kind, MetricSet
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.trial import History, Study, Trial, TrialState
from crosswind.data.store.capabilities import Kept, capabilities, kept_in
from crosswind.data.store.store import Store

SECOND = 10**9
HEAT = MetricSet("power", "watts", (Column("ts_ns", "time", Kind.KEY), Column("node", "node", Kind.KEY, "string")))
RUN = Run("r0", "bert", "lab", RunState.COMPLETED, world_size=4, started_ns=0, ended_ns=100 * SECOND, nodes=("n9",))
JOB = Job("lab", "0", "train", "ada", state="COMPLETED", nodes=("n1", "n2"), node_count=2, energy_joules=7.0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def possible(store: Store) -> dict[str, bool]:
    return {capability.name: capability.is_possible for capability in capabilities(kept_in(store))}


def test_an_empty_store_can_answer_nothing(store: Store) -> None:
    assert kept_in(store) == Kept()
    assert set(possible(store).values()) == {False}


def test_five_repeats_of_a_run_can_be_predicted_and_four_cannot(store: Store) -> None:
    with store.catalog.write() as session:
        for number in range(4):
            session.runs.merge(replace(RUN, run_id=f"r{number}"))
        session.runs.merge(replace(RUN, run_id="f", state=RunState.FAILED))
        session.runs.merge(replace(RUN, run_id="o", configuration={"batch": 8}))
    assert not possible(store)["prediction"]
    with store.catalog.write() as session:
        session.runs.merge(replace(RUN, run_id="r4"))
    kept = kept_in(store)
    assert (kept.runs, kept.workloads, kept.cohorts, kept.repeated_cohorts) == (7, 1, 2, 1)
    assert possible(store)["prediction"]


def test_repeated_jobs_can_be_predicted_and_tell_their_energy(store: Store) -> None:
    store.jobs.put(*(replace(JOB, job_id=str(n), started_ns=n + 1, ended_ns=n + 2) for n in range(5)))
    store.jobs.put(replace(JOB, job_id="0", started_ns=1, ended_ns=2, energy_joules=None))  # reported again
    store.jobs.put(replace(JOB, job_id="1", name="", state="RUNNING", energy_joules=None))  # by a poorer list
    kept = kept_in(store)
    assert (kept.jobs, kept.job_names, kept.repeated_jobs, kept.with_energy) == (5, 1, 1, 5)
    assert possible(store)["prediction"]
    assert possible(store)["energy"]


def test_samples_of_a_job_are_those_of_its_nodes_and_time(store: Store) -> None:
    hour = 3600 * SECOND
    store.jobs.put(replace(JOB, started_ns=hour, ended_ns=2 * hour), replace(JOB, job_id="1", nodes=("n3",)))
    with store.catalog.write() as session:
        session.runs.merge(RUN)
    store.lake.append("a", to_table(HEAT, {"ts_ns": [3 * hour, hour + 5], "node": ["n1", "n3"]}))
    assert kept_in(store).sampled == 0
    store.lake.append("b", to_table(HEAT, {"ts_ns": [hour + 5], "node": ["n2"]}))
    kept = kept_in(store)
    assert (kept.looked_at, kept.sampled, kept.power_sets) == (2, 1, ("power",))


def test_of_jobs_of_very_many_nodes_fewer_are_looked_at(store: Store) -> None:
    large = [Job("lab", str(n), nodes=("n[1-100000]",), started_ns=n + 1, ended_ns=n + 9) for n in range(8)]
    store.jobs.put(*large)
    store.lake.append("a", to_table(HEAT, {"ts_ns": [10], "node": ["n99999"]}))
    kept = kept_in(store)
    assert (kept.looked_at, kept.sampled) == (5, 5)


def test_trials_of_other_tools_can_begin_a_search(store: Store) -> None:
    with store.catalog.write() as session:
        study = Study("s", "search", {}, "run_seconds", "s", 0, 1)
        session.studies.merge(History(study, (Trial({"x": 1}, TrialState.DONE, 1.0, "t"),)))
    assert possible(store)["warm start of a search"]
