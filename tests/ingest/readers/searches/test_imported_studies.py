"""Searches that other tools made go on here: stored once, they give the next configuration."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.trial import TrialState
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import Loaded
from crosswind.ingest.load.load_file import load_file
from crosswind.ingest.reader.reader import Context
from crosswind.ingest.readers.formats import reader_for
from crosswind.models.tuner.service.catalog import CatalogStudyService, Lease
from crosswind.models.tuner.space.space import Space

FILES = ["optuna/optuna.db", "optuna_journal/journal.log", "kernel_tuner/scale.json", "configurations/allreduce.csv"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def load(store: Store, path: Path) -> Loaded:
    loaded = Loaded()
    load_file(store, path, reader_for(path), loaded, context=Context("lab"))
    return loaded


def studies(store: Store) -> dict[str, str]:
    """Full names by what the other tool called them."""
    with store.catalog.read() as session:
        return {study.name[:-7]: study.name for study in session.studies.all()}


@pytest.mark.parametrize("name", FILES)
def test_an_imported_study_gives_a_configuration_that_nobody_has_tried(store: Store, name: str) -> None:
    load(store, RECORDINGS / name)
    service = CatalogStudyService(store.catalog)
    for study in studies(store).values():
        tried = [record.trial.configuration for record in service.trials(study)]
        assert len(tried) >= 4
        [record] = service.suggest(study, 1, Lease("me", 60.0))
        space = Space.from_json(service.status(study).study.space)
        assert space.contains(record.trial.configuration)
        assert space.key(record.trial.configuration) not in {space.key(configuration) for configuration in tried}


def test_studies_of_one_name_are_distinguished(store: Store) -> None:
    load(store, RECORDINGS / "kernel_tuner/scale.json")
    load(store, RECORDINGS / "kernel_tuner/scale-open.json")
    with store.catalog.read() as session:
        names = [study.name for study in session.studies.all()]
    assert len(set(names)) == 2
    assert {name[:-7] for name in names} == {"scale-10000"}


def test_the_best_trial_is_the_other_tools_best(store: Store) -> None:
    load(store, RECORDINGS / "optuna/optuna.db")
    best = CatalogStudyService(store.catalog).best(studies(store)["step-time"])
    assert best is not None
    assert best.objective == 4.13259129047242
    fastest = CatalogStudyService(store.catalog).best(studies(store)["throughput"])
    assert fastest is not None
    assert (fastest.configuration, fastest.objective) == ({"batch": 16}, -1600.0)


def test_the_same_file_again_and_packed_adds_no_trials(store: Store, tmp_path: Path) -> None:
    load(store, RECORDINGS / "optuna_journal/journal.log")
    packed = tmp_path / "journal.log.gz"
    packed.write_bytes(gzip.compress((RECORDINGS / "optuna_journal/journal.log").read_bytes()))
    assert load(store, RECORDINGS / "optuna_journal/journal.log").duplicates == 1
    load(store, packed)
    assert len(CatalogStudyService(store.catalog).trials(studies(store)["step-time"])) == 8


def test_trials_that_ended_since_are_added(store: Store, tmp_path: Path) -> None:
    lines = (RECORDINGS / "optuna_journal/journal.log").read_text().splitlines(keepends=True)
    path = tmp_path / "journal.log"
    path.write_text("".join(lines[:40]))
    load(store, path)
    early = CatalogStudyService(store.catalog).trials(studies(store)["step-time"])
    path.write_text("".join(lines))
    load(store, path)
    late = CatalogStudyService(store.catalog).trials(studies(store)["step-time"])
    assert 0 < len(early) < len(late) == 8
    assert late[: len(early)] == early
    assert {record.trial.state for record in late} == {TrialState.DONE, TrialState.FAILED, TrialState.PRUNED}
