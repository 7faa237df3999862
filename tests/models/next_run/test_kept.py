"""Models that one process fitted answer in the next one."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.models.next_run.made_up_runs import put

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.question import Question
from crosswind.data.store.store import Store
from crosswind.models.next_run.predictor import RunPredictor

BATCHES = (8, 16, 32, 64)
ASKED = Question("gpt", "lab", {"batch": 24}, 2)
RAN = Question("gpt", "lab", {"batch": 8}, 2)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Sixty runs of four cohorts on two ranks, of 1 s a sample."""
    with Store.open(tmp_path / "store") as opened:
        for number in range(60):
            batch = BATCHES[number % 4]
            put(opened, f"r{number}", batch + number % 3 / 10, place=number, configuration={"batch": batch})
        yield opened


class Asker:
    """A predictor of a process of its own, and what it heard of fits."""

    def __init__(self, store: Store) -> None:
        self.heard: list[str] = []
        self.predictor = RunPredictor(store, notice=self.heard.append)


def kept_files(store: Store) -> list[Path]:
    return sorted((store.home / "models" / "fitted").glob("*.cwm"))


def test_a_second_process_answers_the_same_without_a_fit(store: Store) -> None:
    first, second = Asker(store), Asker(store)
    answers = [first.predictor.answer(question) for question in (ASKED, RAN)]
    assert [second.predictor.answer(question) for question in (ASKED, RAN)] == answers
    assert first.heard == ["fitting a model of 60 runs; it is kept for the next question"]
    assert second.heard == []
    assert len(kept_files(store)) == 1


def test_a_few_new_runs_are_added_and_many_are_learned_from(store: Store) -> None:
    Asker(store).predictor.answer(RAN)
    put(store, "r60", 8.0, place=60)
    few = Asker(store)
    assert few.predictor.answer(RAN).cohort_runs == 16
    assert few.heard == []
    for number in range(61, 65):
        put(store, f"r{number}", 8.0, place=number)
    many = Asker(store)
    assert many.predictor.answer(RAN).cohort_runs == 20
    assert many.heard == ["fitting a model of 65 runs; it is kept for the next question"]


def test_a_run_that_is_another_by_now_is_learned_from_anew(store: Store) -> None:
    Asker(store).predictor.answer(RAN)
    put(store, "r56", 80.0, place=56)  # it ended later than was known
    put(store, "r60", 8.0, place=60)
    again = Asker(store)
    assert 80.0 in [run.seconds for run in again.predictor.answer(RAN).evidence]
    assert len(again.heard) == 1


@pytest.mark.parametrize(
    "content", [b"PK", *(pytest.param(content, marks=pytest.mark.thorough) for content in (b"", b"\0" * 1000))]
)
def test_a_damaged_file_is_fitted_again_and_replaced(store: Store, content: bytes) -> None:
    answer = Asker(store).predictor.answer(ASKED)
    [file] = kept_files(store)
    file.write_bytes(content)
    again = Asker(store)
    assert again.predictor.answer(ASKED) == answer
    assert len(again.heard) == 1
    assert file.stat().st_size > len(content)


def test_one_fit_answers_about_every_workload(store: Store) -> None:
    for number in range(60, 66):
        put(store, f"b{number}", 5.0, place=number, workload="bert")
    Asker(store).predictor.answer(RAN)
    bert = Asker(store)
    assert bert.predictor.answer(replace(RAN, workload="bert")).cohort_runs == 6
    assert bert.heard == []
    assert len(kept_files(store)) == 1


def test_a_file_of_another_workload_does_not_answer(store: Store) -> None:
    for number in range(60, 66):
        put(store, f"b{number}", 5.0, place=number, workload="bert")
    Asker(store).predictor.answer(RAN)
    of_all = kept_files(store)
    put(store, "r66", 8.0, place=66)
    put(store, "b67", 5.0, place=67, workload="bert")
    for workload in ("gpt", "bert"):
        Asker(store).predictor.answer(replace(RAN, workload=workload))
    one, other = (file for file in kept_files(store) if file not in of_all)
    one.write_bytes(other.read_bytes())
    for workload, runs in (("gpt", 16), ("bert", 7)):
        assert Asker(store).predictor.answer(replace(RAN, workload=workload)).cohort_runs == runs


def test_a_folder_that_cannot_be_written_keeps_nobody_from_an_answer(store: Store) -> None:
    (store.home / "models").write_text("a file in its place")
    assert Asker(store).predictor.answer(RAN).cohort_runs == 15


def test_names_that_never_ran_fill_no_folder(store: Store) -> None:
    for name in ("gtp", "bret"):
        with pytest.raises(InvalidInputError, match="no earlier run"):
            Asker(store).predictor.answer(replace(RAN, workload=name))
    assert len(kept_files(store)) == 1
