from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pytest

from crosswind.api.answer_cache import ANSWERS_MAX, AnswerCache
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.job import Job
from crosswind.data.store.store import Store


class Clock:
    """Seconds that pass while a question is answered."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Question:
    """Question for the number of stored runs, answered after so many seconds; counts its calls."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.clock, self.seconds, self.calls = clock, seconds, 0

    def __call__(self, store: Store, wanted: str | None = None, *, limit: int = 9) -> int:
        self.calls += 1
        self.clock.now += self.seconds
        with store.catalog.read() as session:
            return min(session.runs.stand(RunFilter(workload=wanted))[0], limit)


def add_run(store: Store, run_id: str) -> None:
    with store.catalog.write() as session:
        session.runs.merge(replace(session.runs.get("r0"), run_id=run_id))


def test_an_answer_is_cached_until_a_run_comes_new(store: Store) -> None:
    clock = Clock()
    question, answers = Question(clock, 0.1), AnswerCache(clock=clock)
    assert [answers(store, question, "nanogpt") for _ in range(3)] == [8, 8, 8]
    assert question.calls == 1
    add_run(store, "r9")
    assert answers(store, question, "nanogpt") == 9
    assert question.calls == 2


@dataclass(frozen=True)
class Kept:
    """An answer that says for how long it is kept."""

    runs: int
    keep_seconds: float = 60.0


def test_an_answer_is_kept_for_as_long_as_it_says_whatever_is_stored(store: Store) -> None:
    clock = Clock()
    answers = AnswerCache(clock=clock)

    def question(store: Store) -> Kept:
        with store.catalog.read() as session:
            return Kept(session.runs.stand(RunFilter(workload="nanogpt"))[0])

    assert answers(store, question).runs == 8
    add_run(store, "r9")
    clock.now += 59
    assert answers(store, question).runs == 8
    clock.now += 2
    assert answers(store, question).runs == 9


def test_other_arguments_are_another_question(store: Store) -> None:
    clock = Clock()
    question, answers = Question(clock, 0.1), AnswerCache(clock=clock)
    assert [answers(store, question, "nanogpt"), answers(store, question, "bert"), answers(store, question)] == [
        8,
        1,
        9,
    ]
    assert answers(store, question, limit=3) == 3
    assert question.calls == 4


def test_an_account_of_a_job_and_a_batch_make_answers_new(store: Store) -> None:
    clock = Clock()
    question, answers = Question(clock, 0.1), AnswerCache(clock=clock)
    answers(store, question)
    store.jobs.put(Job("lab", "99", state="RUNNING"))
    answers(store, question)
    with store.catalog.write() as session:
        session.add_batch("later", "agent", row_count=1, skipped=0)
    answers(store, question)
    assert question.calls == 3


def test_a_costly_answer_is_kept_for_ten_times_what_it_took(store: Store) -> None:
    clock = Clock()
    question, answers = Question(clock, 5.0), AnswerCache(clock=clock)
    assert answers(store, question, "nanogpt") == 8
    add_run(store, "r9")
    clock.now += 49.0
    assert (answers(store, question, "nanogpt"), question.calls) == (8, 1)
    clock.now += 2.0
    assert (answers(store, question, "nanogpt"), question.calls) == (9, 2)


def test_simultaneous_callers_wait_for_one_answer(store: Store) -> None:
    question, answers = Question(Clock(), 0.1), AnswerCache()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: answers(store, question, "nanogpt"), range(8))) == [8] * 8
    assert question.calls == 1


def test_a_refusal_is_not_cached(store: Store) -> None:
    calls = []

    def refused(_: Store) -> int:
        calls.append(1)
        raise InvalidInputError("workload 'x': expected one that ran")

    answers = AnswerCache()
    for _ in range(2):
        with pytest.raises(InvalidInputError, match="expected one that ran"):
            answers(store, refused)
    assert len(calls) == 2


def test_only_so_many_answers_are_kept(store: Store) -> None:
    clock = Clock()
    question, answers = Question(clock, 0.1), AnswerCache(clock=clock)
    for number in range(ANSWERS_MAX + 1):
        answers(store, question, limit=number)
    answers(store, question, limit=ANSWERS_MAX)
    assert question.calls == ANSWERS_MAX + 1
    answers(store, question, limit=0)
    assert question.calls == ANSWERS_MAX + 2
