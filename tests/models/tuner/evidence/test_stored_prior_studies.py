"""Prior studies and runs in the store that a study starts from."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from crosswind.data.schema.run import Run
from crosswind.data.schema.trial import Study, Trial, TrialRecord, TrialState
from crosswind.data.store.store import Store
from crosswind.models.tuner.evidence.prior_studies import LEFT_OUT_MAX, ROWS_MAX, SOURCES_MAX, telling
from crosswind.models.tuner.evidence.stored_prior_studies import StoredPriorStudies
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.service.catalog import CatalogStudyService, Lease

AddRun = Callable[..., Run]
SPACE = {"bucket_mb": {"kind": "ordinal", "values": [1, 2, 4, 8, 16]}, "threads": {"kind": "int", "low": 1, "high": 8}}
STUDY = Study("s1", "mine", SPACE, "step_p50_seconds", "s", 0, 1)
DESCRIBED = replace(STUDY, workload="gpt", system="here", world_size=2)
BEST = {"bucket_mb": 8, "threads": 5}


def add_study(store: Store, name: str, **facts: object) -> Study:
    """Another study of the workload whose best of four trials is BEST."""
    study = replace(DESCRIBED, **({"study_id": f"id-{name}", "name": name} | facts))  # type: ignore[arg-type]
    with store.catalog.write() as session:
        session.studies.add(study)
        for number, objective in enumerate((3.0, 1.0, 2.0, 4.0)):
            configuration = BEST if objective == 1.0 else {"bucket_mb": 1, "threads": number + 1}
            trial = Trial(configuration, TrialState.DONE, objective, f"{name}-{number}")
            session.leases.add(TrialRecord(trial, study.study_id, owner="x", lease_expires_ns=0))
    return study


def test_a_study_of_a_service_starts_from_the_best_of_an_earlier_one(store: Store) -> None:
    add_study(store, "earlier")
    service = CatalogStudyService(store.catalog, find_prior_studies=StoredPriorStudies(store))
    service.create(DESCRIBED)
    [first] = service.suggest("mine", 1, Lease("alice", 60))
    assert first.trial.configuration == BEST


def test_a_study_with_a_limit_starts_from_the_best_within_it(store: Store) -> None:
    earlier = add_study(store, "earlier")
    with store.catalog.write() as session:
        hot = Trial(BEST | {"threads": 8}, TrialState.DONE, 0.5, "hot")
        session.leases.add(TrialRecord(hot, earlier.study_id, owner="x", outcomes={"power_watts": 400.0}))
    limited = replace(DESCRIBED, limits=("power_watts <= 300",))
    service = CatalogStudyService(store.catalog, find_prior_studies=StoredPriorStudies(store))
    service.create(limited)
    suggested = [record.trial.configuration for record in service.suggest("mine", 5, Lease("alice", 60))]
    assert suggested[:3] == [BEST, {"bucket_mb": 1, "threads": 3}, {"bucket_mb": 1, "threads": 1}]
    assert hot.configuration not in suggested[:3]
    assert len({str(configuration) for configuration in suggested}) == 5


def test_runs_of_the_workload_come_before_other_studies(store: Store, add_run: AddRun) -> None:
    add_study(store, "earlier")
    for number in range(4):
        add_run(f"own-{number}", {"bucket_mb": 1, "threads": number + 1})
        add_run(f"far-{number}", {"bucket_mb": 1, "threads": number + 1}, system="there")
        add_run(f"other-{number}", {"bucket_mb": 1, "threads": number + 1}, workload="cnn")
    prior = StoredPriorStudies(store)(DESCRIBED)
    assert [source.name for source in prior.sources] == ["gpt here", "gpt on there, 2 ranks", "study earlier"]
    assert prior.features == {"workload": "gpt", "system": "here", "world_size": 2.0}
    assert StoredPriorStudies(store)(STUDY).sources == ()


def test_the_workload_is_known_by_the_studys_own_newest_run(store: Store, add_run: AddRun) -> None:
    service = CatalogStudyService(store.catalog)
    service.create(STUDY)
    [record] = service.suggest("mine", 1, Lease("alice", 60))
    run = add_run("own", dict(record.trial.configuration))
    service.complete("mine", record.trial.trial_id, 1.0, run_id=run.run_id)
    add_run("earlier", {"bucket_mb": 1, "threads": 1})
    prior = StoredPriorStudies(store)(STUDY)
    assert prior.features == {"workload": "gpt", "system": "here", "world_size": 2.0}
    [source] = prior.sources
    assert (source.name, list(source.configurations)) == ("gpt here", [{"bucket_mb": 1, "threads": 1}])


def test_where_the_largest_is_best_runs_count_with_the_other_sign(store: Store, add_run: AddRun) -> None:
    add_run("own", {"bucket_mb": 1, "threads": 1})
    maximised = replace(DESCRIBED, direction="maximise")
    assert [list(source.objectives) for source in StoredPriorStudies(store)(maximised).sources] == [[-1.0]]


def test_a_lake_that_cannot_be_read_leaves_the_studies(
    store: Store, add_run: AddRun, caplog: pytest.LogCaptureFixture
) -> None:
    add_study(store, "earlier")
    add_run("own", {"bucket_mb": 1, "threads": 1})
    for part in (store.home / "lake").rglob("*.parquet"):
        part.write_bytes(b"no parquet")
    assert [source.name for source in StoredPriorStudies(store)(DESCRIBED).sources] == ["study earlier"]
    assert "cannot be read" in caplog.text
    [left] = StoredPriorStudies(store)(DESCRIBED).report.left_out
    assert left.name == "stored runs"
    assert left.reason.startswith("cannot be read: ")


def test_every_source_has_its_reason_and_what_was_left_out_too(store: Store, add_run: AddRun) -> None:
    add_study(store, "earlier", world_size=16)
    add_study(store, "wrong", workload="cnn")
    add_study(store, "smaller", space={"threads": SPACE["threads"]})
    add_study(store, "unlike", space={"lr": {"kind": "float", "low": 0, "high": 1}})
    for number in range(3):
        add_run(f"own-{number}", {"bucket_mb": 1, "threads": number + 1})
    report = StoredPriorStudies(store)(DESCRIBED).report
    assert [(source.name, source.why) for source in report.used] == [
        (
            "gpt here",
            "stored runs of the same workload, 2 of 2 parameters, 3 configurations, system here at 2 ranks",
        ),
        ("study earlier", "same workload, 2 of 2 parameters, 4 configurations, system here at 16 ranks"),
    ]
    assert [(one.name, one.reason) for one in report.left_out] == [
        ("study wrong", "another workload: cnn"),
        ("study smaller", "1 of 2 parameters missing: bucket_mb"),
    ]


def test_only_few_of_those_left_out_are_listed(store: Store) -> None:
    for number in range(LEFT_OUT_MAX + 2):
        add_study(store, f"wrong-{number}", workload="cnn")
    report = StoredPriorStudies(store)(DESCRIBED).report
    assert (report.used, len(report.left_out), report.others_left_out) == ((), LEFT_OUT_MAX, 2)


def test_a_study_that_wants_no_sources_gets_none(store: Store, add_run: AddRun) -> None:
    add_study(store, "earlier")
    add_run("own", {"bucket_mb": 1, "threads": 1})
    prior = StoredPriorStudies(store)(replace(DESCRIBED, sources=()))
    assert (prior.sources, prior.report.used, prior.report.left_out) == ((), (), ())


def test_a_study_that_names_its_sources_gets_these_alone(store: Store, add_run: AddRun) -> None:
    add_study(store, "earlier")
    add_study(store, "insisted", workload="cnn")
    add_study(store, "smaller", space={"threads": SPACE["threads"]})
    add_run("own", {"bucket_mb": 1, "threads": 1})
    naming = replace(DESCRIBED, sources=("insisted", "id-smaller", "gone"))
    report = StoredPriorStudies(store)(naming).report
    assert [(source.name, source.why) for source in report.used] == [
        ("study insisted", "named, 2 of 2 parameters, 4 configurations, system here at 2 ranks")
    ]
    assert [(one.name, one.reason) for one in report.left_out] == [
        ("study smaller", "1 of 2 parameters missing: bucket_mb"),
        ("study gone", "is not there"),
    ]


def test_a_study_measured_elsewhere_in_the_space_is_left_out_with_the_reason(store: Store) -> None:
    wide = {**SPACE, "threads": {"kind": "int", "low": 1, "high": 64}}
    narrow = {**SPACE, "threads": {"kind": "int", "low": 4, "high": 64}}
    add_study(store, "earlier", space=wide)
    [left] = StoredPriorStudies(store)(replace(DESCRIBED, space=narrow)).report.left_out
    reason = "2 of 4 trials measured in this space, expected 3 (2: threads is outside the space)"
    assert (left.name, left.reason) == ("study earlier", reason)


def test_trials_whose_runs_count_do_not_count_twice_and_others_do(store: Store, add_run: AddRun) -> None:
    other = add_study(store, "earlier", objective="loss", workload=None, system=None)
    with store.catalog.read() as session:
        records = session.leases.records(other.study_id)
    runs = [add_run(f"run-{record.trial_id}", dict(record.trial.configuration)) for record in records]
    with store.catalog.write() as session:
        for record, run in zip(records, runs, strict=True):
            session.leases.change(record, replace(record, run_id=run.run_id))
    of_program = StoredPriorStudies(store)(replace(DESCRIBED, objective="loss"))
    assert [source.name for source in of_program.sources] == ["study earlier"]
    of_steps = StoredPriorStudies(store)(DESCRIBED)
    assert [source.name for source in of_steps.sources] == ["gpt here"]


def test_very_large_sources_are_cut_to_the_telling_rows() -> None:
    rows = 10 * ROWS_MAX
    objectives = [None if place % 2 else float(rows - place) for place in range(rows)]
    large = Source("large", [{"threads": place} for place in range(rows)], objectives)
    fewer = telling(large)
    assert (len(fewer.configurations), len(fewer.objectives)) == (ROWS_MAX, ROWS_MAX)
    assert fewer.best(3) == large.best(3)
    assert None in fewer.objectives


def test_of_very_many_sources_the_nearest_are_used(store: Store) -> None:
    for number in range(SOURCES_MAX + 2):
        add_study(store, f"far-{number}", world_size=64 - number)
    prior = StoredPriorStudies(store)(DESCRIBED)
    names = [f"study far-{number}" for number in range(SOURCES_MAX + 1, 1, -1)]
    assert [source.name for source in prior.sources] == names
    assert {one.reason for one in prior.report.left_out} == {"same workload, but 6 nearer sources are used"}
