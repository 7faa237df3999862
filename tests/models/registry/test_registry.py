import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.models.registry.models import LEARNED, poor, rows, trained

from crosswind.data.schema.errors import (
    ConflictError,
    InvalidInputError,
    MalformedError,
    NotFoundError,
    UnavailableError,
)
from crosswind.data.schema.model import ModelState
from crosswind.data.schema.prediction import Prediction
from crosswind.data.store.store import Store
from crosswind.models.baseline import Ewma
from crosswind.models.registry.evidence import evidence_of, row_losses
from crosswind.models.registry.registry import Registry

NAME = "step-time"


def test_a_registered_model_predicts_the_same_in_another_process_memory(either_store: Store) -> None:
    made = trained()
    record = Registry(either_store).register(NAME, made.model, made.evidence)
    assert (record.version, record.state, record.parent) == (1, ModelState.CANDIDATE, None)
    X, _ = rows(5, 3)
    loaded = Registry(either_store).load(NAME, 1)
    assert loaded.record == record
    assert np.array_equal(loaded.model.predict(X).values, made.model.predict(X).values)


def test_the_promoted_version_answers_and_is_read_once(store: Store) -> None:
    registry, made = Registry(store), trained()
    with pytest.raises(NotFoundError, match="no version of model 'step-time' is promoted"):
        registry.load(NAME)
    for _ in range(2):
        registry.register(NAME, made.model, made.evidence)
    registry.promote(NAME, 1)
    first = registry.load(NAME)
    assert registry.load(NAME).model is first.model
    registry.promote(NAME, 2)
    assert registry.load(NAME).record.version == 2
    assert registry.load(NAME, 1).record.state is ModelState.RETIRED


def test_a_version_knows_which_one_answered_when_it_was_made(store: Store) -> None:
    registry, made = Registry(store), trained()
    registry.register(NAME, made.model, made.evidence)
    registry.promote(NAME, 1)
    assert registry.register(NAME, made.model, made.evidence).parent == 1


def test_a_model_that_loses_to_a_baseline_is_not_promoted_but_for_a_reason(store: Store) -> None:
    registry, made = Registry(store), trained()
    registry.register(NAME, made.model, poor(made.evidence))
    with pytest.raises(ConflictError, match=r"version 1 of model .step-time. is not promoted: its loss is .* last.s"):
        registry.promote(NAME, 1)
    with pytest.raises(InvalidInputError, match="reason ' ': expected 1 to 1000"):
        registry.promote(NAME, 1, forced_because=" ")
    assert registry.load(NAME, 1).record.state is ModelState.CANDIDATE
    promoted = registry.promote(NAME, 1, forced_because="the baseline ran on other rows")
    assert (promoted.state, promoted.note) == (ModelState.PROMOTED, "forced: the baseline ran on other rows")
    assert promoted.history[-1].reason == promoted.note


def test_a_tie_with_a_baseline_is_no_win(store: Store) -> None:
    registry, made = Registry(store), trained()
    registry.register(NAME, made.model, replace(made.evidence, baselines={"last": made.evidence.loss}))
    with pytest.raises(ConflictError, match="expected less than last's"):
        registry.promote(NAME, 1)


def test_no_baseline_and_few_rows_are_no_grounds(store: Store) -> None:
    registry, made = Registry(store), trained()
    registry.register(NAME, made.model, replace(made.evidence, baselines={}))
    registry.register(NAME, made.model, replace(made.evidence, validated_rows=7))
    with pytest.raises(ConflictError, match="no naive baseline stands beside it"):
        registry.promote(NAME, 1)
    with pytest.raises(ConflictError, match="validated on 7 rows, expected at least 8"):
        registry.promote(NAME, 2)


def test_what_was_taken_back_does_not_return_without_a_reason(store: Store) -> None:
    registry, made = Registry(store), trained()
    for version in (1, 2):
        registry.register(NAME, made.model, made.evidence)
        registry.promote(NAME, version)
    assert registry.rollback(NAME, "it is slow").version == 1
    with pytest.raises(ConflictError, match="it was taken back: it is slow"):
        registry.promote(NAME, 2)
    assert registry.promote(NAME, 2, forced_because="it was the network").version == 2


def test_demoting_the_only_version_leaves_none(store: Store) -> None:
    registry, made = Registry(store), trained()
    registry.register(NAME, made.model, made.evidence)
    registry.promote(NAME, 1)
    assert registry.demote(NAME, 1, "drift") is None
    with pytest.raises(NotFoundError, match="no version"):
        registry.load(NAME)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "Step", "a b", "x" * 65, "-x", "é", "a\n"])
def test_a_name_that_could_be_a_path_is_refused(store: Store, name: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(f"model name {name[:80]!r}")):
        Registry(store).register(name, Ewma(), trained().evidence)
    assert not (store.home / "models").exists()


def test_a_model_that_cannot_be_saved_leaves_nothing(store: Store) -> None:
    with pytest.raises(InvalidInputError, match="cannot be saved"):
        Registry(store).register(NAME, Ewma(lambda: 1), trained().evidence)  # type: ignore[arg-type]
    assert not (store.home / "models").exists()
    with store.catalog.read() as session:
        assert session.models.all() == []


@pytest.mark.parametrize("damage", [lambda content: content[:-1], lambda content: b"", lambda content: content + b"x"])
def test_a_file_that_was_changed_is_refused(store: Store, damage: object) -> None:
    registry, made = Registry(store), trained()
    registry.register(NAME, made.model, made.evidence)
    path = store.home / "models" / NAME / "1.cwm"
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(MalformedError, match=r"1.cwm is not the file that was registered"):
        registry.load(NAME, 1)
    path.unlink()
    with pytest.raises(UnavailableError, match=r"1.cwm cannot be read: No such file"):
        registry.load(NAME, 1)


def test_a_folder_that_cannot_be_written_registers_nothing(store: Store) -> None:
    (store.home / "models").write_text("in the way")
    with pytest.raises(UnavailableError, match=r"1.cwm cannot be written"):
        Registry(store).register(NAME, Ewma(), trained().evidence)
    with store.catalog.read() as session:
        assert session.models.all() == []


def test_a_file_left_by_a_killed_writer_is_replaced(store: Store, tmp_path: Path) -> None:
    folder = store.home / "models" / NAME
    folder.mkdir(parents=True)
    (folder / "1.cwm").write_bytes(b"half")
    registry = Registry(store)
    registry.register(NAME, Ewma(0.25), trained().evidence)
    assert registry.load(NAME, 1).model == Ewma(0.25)
    assert list((store.home / "models" / ".writing").iterdir()) == []


def test_losses_are_those_of_logarithms() -> None:
    prediction = Prediction((0.25, 0.5), np.array([[1.0, 2.0], [1.0, 1.0]]))
    losses = row_losses(prediction, np.array([2.0, np.e]))
    assert losses == pytest.approx([(0.25 * np.log(2) + 0) / 2, (0.25 + 0.5) / 2])


def test_evidence_has_coverage_of_every_level_and_losses_of_every_baseline() -> None:
    y = np.array([1.0, 2.0, 3.0, 4.0])
    prediction = Prediction((0.1, 0.9), np.tile([1.5, 3.5], (4, 1)))
    evidence = evidence_of(LEARNED, prediction, y, {"same": prediction})
    assert evidence.coverage == ((0.1, 0.25), (0.9, 0.75))
    assert (evidence.validated_rows, len(evidence.row_losses)) == (4, 4)
    assert evidence.baselines == {"same": evidence.loss}


def test_what_is_no_number_of_seconds_is_no_evidence() -> None:
    prediction = Prediction((0.1, 0.9), np.array([[1.0, 2.0]]))
    for y in (np.array([0.0]), np.array([np.nan]), np.array([])):
        with pytest.raises(InvalidInputError):
            evidence_of(LEARNED, prediction, y, {})
    with pytest.raises(InvalidInputError, match="positive number of seconds"):
        evidence_of(LEARNED, Prediction((0.1,), np.array([[0.0]])), np.array([1.0]), {})
