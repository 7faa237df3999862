"""Pages whose answer takes a while."""

from collections.abc import Iterator
from threading import Event

import pytest
from starlette.testclient import TestClient

from crosswind.api.answer_cache import AnswerCache
from crosswind.api.app import create_app
from crosswind.api.background_answers import MOST, BackgroundAnswers, PendingError
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.store.store import Store


class Slow:
    """A question that is answered when it is let go."""

    def __init__(self) -> None:
        self.go, self.asked = Event(), 0

    def __call__(self, _: Store, number: int = 7) -> int:
        self.asked += 1
        assert self.go.wait(60)
        return number


@pytest.fixture
def slow() -> Iterator[Slow]:
    question = Slow()
    yield question
    question.go.set()


def test_who_comes_again_finds_the_answer(store: Store, slow: Slow) -> None:
    remembered = AnswerCache()
    hurried, patient = (BackgroundAnswers(remembered, wait_seconds=seconds) for seconds in (0.01, 60))
    for _ in range(2):
        with pytest.raises(PendingError, match="ask again in a moment"):
            hurried(store, slow)
    slow.go.set()
    assert patient(store, slow) == 7
    assert slow.asked == 1


def test_a_refusal_comes_to_who_waits(store: Store) -> None:
    def refused(_: Store) -> int:
        raise InvalidInputError("system 'x': expected one that is known")

    with pytest.raises(InvalidInputError, match="expected one that is known"):
        BackgroundAnswers(AnswerCache(), wait_seconds=60)(store, refused)


def test_only_so_many_questions_are_worked_out_at_once(store: Store, slow: Slow) -> None:
    hurried = BackgroundAnswers(AnswerCache(), wait_seconds=0.01)
    for number in range(MOST):
        with pytest.raises(PendingError, match="ask again"):
            hurried(store, slow, number)
    with pytest.raises(PendingError, match=f"{MOST} other questions"):
        hurried(store, slow, MOST)


def test_a_browser_gets_a_page_that_looks_again_and_a_program_the_answer(store: Store) -> None:
    app = create_app(store)
    app.state.page_client.ask = BackgroundAnswers(app.state.client.ask, wait_seconds=0)
    with TestClient(app, base_url="http://localhost:8000") as client:
        waiting = client.get("/stragglers", headers={"Accept": "text/html"})
        assert (waiting.status_code, waiting.headers["refresh"]) == (202, "2")
        assert waiting.headers["cache-control"] == "no-store"
        assert '<h1 role="status">This page is being computed.</h1>' in waiting.text
        assert 'href="./static/crosswind.css' in waiting.text
        answer = client.get("/stragglers.json")
        assert (answer.status_code, answer.json()["page"]) == (200, "stragglers")
