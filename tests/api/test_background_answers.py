"""Pages that take a while to compute."""

from collections.abc import Iterator
from threading import Event

import pytest
from tests.serving import own_client

from crosswind.api.answer_cache import AnswerCache
from crosswind.api.app import create_app
from crosswind.api.background_answers import PROMISED_SECONDS, QUESTIONS_MAX, BackgroundAnswers, PendingError
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store


class Slow:
    """A question that is answered once `go` is set."""

    def __init__(self) -> None:
        self.go, self.calls = Event(), 0

    def __call__(self, _: Store, number: int = 7) -> int:
        self.calls += 1
        assert self.go.wait(60)
        return number


@pytest.fixture
def slow() -> Iterator[Slow]:
    question = Slow()
    yield question
    question.go.set()


def test_the_next_request_finds_the_answer(store: Store, slow: Slow) -> None:
    cache = AnswerCache()
    hurried, patient = (BackgroundAnswers(cache, wait_seconds=seconds) for seconds in (0.01, 60))
    for _ in range(2):
        with pytest.raises(PendingError, match="try again in a moment"):
            hurried(store, slow)
    slow.go.set()
    assert patient(store, slow) == 7
    assert slow.calls == 1


def test_an_answer_is_kept_for_who_was_sent_away_and_not_longer(store: Store, slow: Slow) -> None:
    now = [0.0]
    answers = BackgroundAnswers(lambda *asked: asked[1](asked[0]), wait_seconds=0.2, clock=lambda: now[0])
    with pytest.raises(PendingError):
        answers(store, slow)
    slow.go.set()
    while answers(store, slow) != 7 or now[0] < PROMISED_SECONDS - 1:
        now[0] += 1
    assert slow.calls == 1
    now[0] += 1
    assert (answers(store, slow), slow.calls) == (7, 2)


def test_a_refusal_reaches_the_waiting_caller(store: Store) -> None:
    def refused(_: Store) -> int:
        raise InvalidInputError("system 'x': expected one that is known")

    with pytest.raises(InvalidInputError, match="expected one that is known"):
        BackgroundAnswers(AnswerCache(), wait_seconds=60)(store, refused)


def test_only_so_many_questions_are_computed_at_once(store: Store, slow: Slow) -> None:
    hurried = BackgroundAnswers(AnswerCache(), wait_seconds=0.01)
    for number in range(QUESTIONS_MAX):
        with pytest.raises(PendingError, match="try again"):
            hurried(store, slow, number)
    with pytest.raises(PendingError, match=f"{QUESTIONS_MAX} other pages"):
        hurried(store, slow, QUESTIONS_MAX)


def test_a_browser_gets_a_page_that_looks_again_and_a_program_the_answer(store: Store) -> None:
    app = create_app(store)
    app.state.page_client.compute = BackgroundAnswers(app.state.client.compute, wait_seconds=0)
    with own_client(app, base_url="http://localhost:8000") as client:
        waiting = client.get("/stragglers", headers={"Accept": "text/html"})
        assert (waiting.status_code, waiting.headers["cache-control"]) == (202, "no-store")
        assert '<noscript><meta http-equiv="refresh" content="2"></noscript>' in waiting.text
        assert 'src="./static/waiting.js' in waiting.text
        assert "<h1>This page is being computed.</h1>" in waiting.text
        assert 'href="./static/crosswind.css' in waiting.text
        answer = client.get("/stragglers.json")
        assert (answer.status_code, answer.json()["page"]) == (200, "stragglers")


def test_a_page_does_not_wait_for_explanations_that_are_not_stored(store: Store) -> None:
    with store.catalog.write() as session:
        session.runs.merge(Run("r1", "gpt", "lab", RunState.RUNNING, 2, started_ns=1))
    app = create_app(store)
    pages, patient = app.state.page_client, app.state.client
    pages.compute = BackgroundAnswers(patient.compute, wait_seconds=0)
    with own_client(app, base_url="http://localhost:8000") as client:
        for address in ("/runs", "/runs/r1"):
            assert client.get(address, headers={"Accept": "text/html"}).status_code == 202, address
            assert client.get(f"{address}.json").status_code == 200
    pages.compute = BackgroundAnswers(patient.compute, wait_seconds=60)
    with store.catalog.read() as session:
        run = session.runs.get("r1")
    assert pages.explain_runs(store, [run]) == patient.explain_runs(store, [run])
