from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from crosswind.data.lake.lake import to_table
from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.checks import PREFLIGHT
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.job import Job
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.trial import History, Study, Trial, TrialState
from crosswind.data.store.store import Store
from crosswind.models.tuner.evidence.from_runs import evidence_of
from crosswind.models.tuner.evidence.query import RunQuery
from crosswind.models.tuner.search.gaussian_process_tuner import GaussianProcessTuner
from crosswind.models.tuner.space.space import Space

AddRun = Callable[..., Run]
SPACE = Space.from_json(
    {
        "bucket_mb": {"kind": "ordinal", "values": [1, 25]},
        "threads": {"kind": "int", "low": 1, "high": 4, "log": False},
    }
)
QUERY = RunQuery("gpt", "here", SPACE, "step_p50_seconds", world_size=2)


def study(name: str, **facts: object) -> Study:
    given: dict[str, object] = {"objective": "step_p50_seconds", "unit": "s", "seed": 0, "created_ns": 1}
    return Study(study_id=f"id-{name}", name=name, space=SPACE.as_json(), **(given | facts))  # type: ignore[arg-type]


def test_runs_of_the_same_place_are_finished_trials(store: Store, add_run: AddRun) -> None:
    add_run("a", {"bucket_mb": "25", "threads": 2.0, "seed": 3}, steps=[9.0] * 3 + [2.0] * 20)
    add_run("b", {"bucket_mb": 1, "threads": 1}, state=RunState.FAILED, steps=(), exit_code=1)
    evidence = evidence_of(store, QUERY)
    assert evidence.sources == ()
    assert set(map(repr, evidence.trials)) == {
        repr(Trial({"bucket_mb": 25, "threads": 2}, TrialState.DONE, 2.0, "run-a")),
        repr(Trial({"bucket_mb": 1, "threads": 1}, TrialState.FAILED, None, "run-b")),
    }
    GaussianProcessTuner(SPACE, 0).observe(evidence.trials)


def test_other_places_are_sources_the_nearest_first(store: Store, add_run: AddRun) -> None:
    one = {"bucket_mb": 1, "threads": 1}
    for number, seconds in enumerate((1.0, 2.0, 4.0)):
        add_run(f"far-{number}", one, system="there", steps=[seconds] * 20, nodes=("n1", "n2"))
    add_run("failed", {"bucket_mb": 25, "threads": 1}, system="there", state=RunState.FAILED, nodes=("n1", "n2"))
    add_run("larger", one, world_size=4)
    add_run("cousin", one, workload="gpt-xl")
    add_run("stranger", one, workload="cnn")
    evidence = evidence_of(store, replace(QUERY, related=("gpt-xl",)))
    assert evidence.trials == ()
    names = [source.name for source in evidence.sources]
    assert names == ["gpt on here, 4 ranks", "gpt on there, 2 ranks", "gpt-xl on here, 2 ranks"]
    there = evidence.sources[1]
    objectives = zip(
        (configuration["bucket_mb"] for configuration in there.configurations), there.objectives, strict=True
    )
    assert dict(objectives) == {1: 2.0, 25: None}  # the median of three, and a failure
    assert there.features == {"workload": "gpt", "system": "there", "world_size": 2.0, "node_count": 2.0}


def test_what_does_not_count_is_counted_by_its_reason(store: Store, add_run: AddRun) -> None:
    one = {"bucket_mb": 1, "threads": 1}
    add_run("small", {"bucket_mb": 1})
    add_run("outside", {"bucket_mb": 4, "threads": 1})
    add_run("going", one, state=RunState.RUNNING)
    add_run("silent", one, steps=())
    add_run("short", one, state=RunState.LOST, steps=[1.0] * 9)
    add_run("good", one)
    evidence = evidence_of(store, QUERY)
    assert [trial.trial_id for trial in evidence.trials] == ["run-good"]
    assert evidence.left_out == {
        "no parameter threads": 1,
        "bucket_mb is outside the space": 1,
        "still running": 1,
        "step_p50_seconds is not recorded": 1,
        "cut short before 10 steps": 1,
    }


def test_a_preempted_run_tells_its_step_time_but_not_its_run_time(store: Store, add_run: AddRun) -> None:
    one = {"bucket_mb": 1, "threads": 1}
    add_run("terminated", one, state=RunState.FAILED, exit_code=143, steps=[1.0] * 40)
    add_run("preempted", one, state=RunState.FAILED, exit_code=1, job_id="7", steps=[2.0] * 40)
    store.jobs.put(Job(system="here", job_id="7", state="PREEMPTED"))
    assert {trial.objective for trial in evidence_of(store, QUERY).trials} == {1.0, 2.0}
    whole = evidence_of(store, replace(QUERY, objective="run_seconds"))
    assert whole.trials == ()
    assert whole.left_out == {"cut short": 2}


def test_objectives_are_expressions_of_outcomes_and_parameters(store: Store, add_run: AddRun) -> None:
    add_run("a", {"bucket_mb": 1, "threads": 4, "batch": 8}, steps=[2.0] * 20)
    per_sample = replace(QUERY, objective="-(batch * world_size / step_p50_seconds) / threads", fixed={"batch": 8})
    [trial] = evidence_of(store, per_sample).trials
    assert trial.objective == -8 * 2 / 2.0 / 4


def test_runs_with_other_fixed_parameters_are_sources(store: Store, add_run: AddRun) -> None:
    add_run("same", {"bucket_mb": 1, "threads": 1, "batch": 8})
    add_run("other", {"bucket_mb": 1, "threads": 1, "batch": 64})
    evidence = evidence_of(store, replace(QUERY, fixed={"batch": 8}))
    assert [trial.trial_id for trial in evidence.trials] == ["run-same"]
    [source] = evidence.sources
    assert (source.name, source.features["batch"]) == ("gpt on here, 2 ranks, batch 64", 64.0)


def test_where_the_space_decides_on_the_scale_all_scales_are_trials(store: Store, add_run: AddRun) -> None:
    space = Space.from_json({"world_size": {"kind": "ordinal", "values": [2, 4]}})
    for ranks in (2, 4, 8):
        add_run(f"r{ranks}", {}, world_size=ranks)
    evidence = evidence_of(store, RunQuery("gpt", "here", space, "step_p50_seconds"))
    assert {trial.configuration["world_size"] for trial in evidence.trials} == {2, 4}
    assert evidence.left_out == {"world_size is outside the space": 1}


def test_a_trials_configuration_and_outcomes_are_surer_than_its_runs(store: Store, add_run: AddRun) -> None:
    add_run("wrapped", {"seed": 1})
    trial = Trial({"bucket_mb": 25, "threads": 3}, TrialState.DONE, 9.0, "t1")
    other = study("other")
    with store.catalog.write() as session:
        session.studies.merge(History(other, (trial,)))
        record = session.leases.record(other.study_id, "t1")
        session.leases.change(record, replace(record, run_id="wrapped", outcomes={"joules": 40.0}))
    [tried] = evidence_of(store, QUERY).trials
    assert tried.configuration == trial.configuration
    own = evidence_of(store, replace(QUERY, study_id=other.study_id))
    assert (own.trials, own.left_out) == ((), {"of the study itself": 1})


def test_earlier_studies_without_runs_are_sources(store: Store) -> None:
    done = Trial({"bucket_mb": 25, "threads": 3}, TrialState.DONE, 9.0, "t1")
    failed = Trial({"bucket_mb": 1, "threads": 3}, TrialState.FAILED, None, "t2")
    waiting = Trial({"bucket_mb": 1, "threads": 1}, TrialState.WAITING, None, "t3")
    outside = Trial({"bucket_mb": 1, "threads": 9}, TrialState.DONE, 1.0, "t4")
    with store.catalog.write() as session:
        session.studies.merge(History(study("by hand"), (done, failed, waiting, outside)))
        features = {"workload": "gpt", "system": "there", "world_size": 8}
        session.studies.merge(History(study("described", **features), (replace(done, trial_id="t5"),)))
        session.studies.merge(History(study("energy", objective="joules"), (replace(done, trial_id="t6"),)))
    [related] = evidence_of(store, QUERY).sources
    assert (related.name, related.features) == ("study described", {**features, "world_size": 8.0})
    evidence = evidence_of(store, replace(QUERY, studies=("by hand", "energy")))
    by_hand = next(source for source in evidence.sources if source.name == "study by hand")
    assert list(by_hand.objectives) == [9.0, None]
    assert evidence.left_out == {"threads is outside the space": 1, "of a study with another objective": 1}
    with pytest.raises(NotFoundError, match="study 'nowhere' is not in the catalog"):
        evidence_of(store, replace(QUERY, studies=("nowhere",)))


def test_checks_describe_the_systems_of_sources(store: Store, add_run: AddRun) -> None:
    add_run("a", {"bucket_mb": 1, "threads": 1}, system="there")
    rows = [(1, "n1", 10, 5.0), (1, "n1", 1000, 80.0), (1, "n2", 1000, 100.0)]
    columns = {
        name: [row[place] for row in rows] for place, name in enumerate(("ts_ns", "node", "size_bytes", "value"))
    }
    same = {"check_id": "c", "system": "there", "measure": "bandwidth", "hardware": "EPYC", "method": "m"}
    store.lake.append("checks", to_table(PREFLIGHT, columns | {name: [value] * 3 for name, value in same.items()}))
    [source] = evidence_of(store, QUERY).sources
    assert source.features["check.bandwidth"] == 90.0
    assert source.features["hardware.bandwidth"] == "EPYC"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"objective": "step_p51_seconds"},
            "step_p51_seconds is no outcome of a run, expected one of step_p05_seconds",
        ),
        ({"objective": "run_seconds +"}, r"expression 'run_seconds \+' cannot be read"),
        ({"workload": ""}, "workload is '', expected a name"),
        ({"world_size": 0}, "world_size is 0, expected 1 or more"),
        ({"fixed": {"threads": 1}}, "parameter threads is fixed at 1, expected it not tuned"),
    ],
)
def test_an_impossible_query_is_refused(store: Store, change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        evidence_of(store, replace(QUERY, **change))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("lab")) as opened:
        load_lab_samples(opened)
        yield opened


@pytest.mark.thorough
def test_measured_runs_of_two_configurations_become_trials_and_sources(lab: Store) -> None:
    space = Space.from_json(
        {
            "batch": {"kind": "ordinal", "values": [16, 32, 48, 64]},
            "threads": {"kind": "int", "low": 1, "high": 2, "log": False},
        }
    )
    fixed = {"link": "direct"}
    query = RunQuery("image-classifier", "fault-lab", space, "step_p50_seconds / batch", world_size=2, fixed=fixed)
    evidence = evidence_of(lab, query)
    assert len({space.key(trial.configuration) for trial in evidence.trials}) == 3
    assert {source.name for source in evidence.sources} == {
        "image-classifier on fault-lab, 3 ranks, link direct",
        "image-classifier on fault-lab, 2 ranks, link relay",
    }
    assert all(trial.objective and 0 < trial.objective < 0.1 for trial in evidence.trials if trial.objective)
    assert len(evidence.trials) > 100
