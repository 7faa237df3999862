"""Prior studies and runs in the store that a study starts from."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from crosswind.data.schema.run import Run
from crosswind.data.schema.trial import Study, Trial, TrialRecord, TrialState
from crosswind.data.store.store import Store
from crosswind.models.tuner.evidence.prior_studies import ROWS_MAX, SOURCES_MAX, bounded, is_comparable
from crosswind.models.tuner.evidence.stored_prior_studies import StoredPriorStudies
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.service.catalog import CatalogStudyService, Lease

AddRun = Callable[..., Run]
SPACE = {"bucket_mb": {"kind": "ordinal", "values": [1, 2, 4, 8, 16]}, "threads": {"kind": "int", "low": 1, "high": 8}}
STUDY = Study("s1", "mine", SPACE, "step_p50_seconds", "s", 0, 1)
DESCRIBED = replace(STUDY, workload="gpt", system="here", world_size=2)
BEST = {"bucket_mb": 8, "threads": 5}


def add_study(store: Store, name: str, **facts: object) -> Study:
    """Another study whose best of four trials is BEST."""
    study = replace(STUDY, study_id=f"id-{name}", name=name, **facts)  # type: ignore[arg-type]
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
    service.create(STUDY)
    [first] = service.suggest("mine", 1, Lease("alice", 60))
    assert first.trial.configuration == BEST


def test_a_study_with_a_limit_starts_from_the_best_within_it(store: Store) -> None:
    earlier = add_study(store, "earlier")
    with store.catalog.write() as session:
        hot = Trial(BEST | {"threads": 8}, TrialState.DONE, 0.5, "hot")
        session.leases.add(TrialRecord(hot, earlier.study_id, owner="x", outcomes={"power_watts": 400.0}))
    limited = replace(STUDY, limits=("power_watts <= 300",))
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
    assert [source.name for source in StoredPriorStudies(store)(STUDY).sources] == ["study earlier"]


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


@pytest.mark.parametrize(
    "change",
    [
        {"objective": "run_seconds"},
        {"direction": "maximise"},
        {"workload": "cnn"},
        {"command": ("python", "other.py")},
        {"study_id": "s1"},
    ],
)
def test_studies_of_something_else_are_no_sources(change: dict[str, object]) -> None:
    study = replace(DESCRIBED, command=("python", "train.py"))
    other = replace(STUDY, study_id="s2", name="other")
    assert is_comparable(study, other)
    assert not is_comparable(study, replace(other, **change))  # type: ignore[arg-type]


def test_very_many_and_very_large_sources_are_cut_to_the_nearest_and_the_telling() -> None:
    rows = 10 * ROWS_MAX
    objectives = [None if place % 2 else float(rows - place) for place in range(rows)]
    large = Source("large", [{"threads": place} for place in range(rows)], objectives)
    fewer = bounded([large, *(Source(f"s{number}", [], []) for number in range(20))])
    assert len(fewer) == SOURCES_MAX
    assert (len(fewer[0].configurations), len(fewer[0].objectives)) == (ROWS_MAX, ROWS_MAX)
    assert fewer[0].best(3) == large.best(3)
    assert None in fewer[0].objectives
