from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event

import pytest

from crosswind.models.shared_work import SharedWork

CALLERS = 8


class Slow:
    """A task that lasts until it is let go, and counts how often it was done."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.times, self.begun, self.go = error, 0, Event(), Event()

    def __call__(self) -> int:
        self.times += 1
        self.begun.set()
        self.go.wait(10.0)
        if self.error:
            raise self.error
        return 7


def waiting(pool: ThreadPoolExecutor, shared: SharedWork, task: Slow) -> list[Future[int]]:
    """Callers who came while the first one's task is done."""
    first = pool.submit(shared, "key", task)
    task.begun.wait(10.0)
    return [first, *(pool.submit(shared, "key", task) for _ in range(CALLERS - 1))]


def test_callers_with_one_key_share_one_piece_of_work() -> None:
    shared, task = SharedWork(), Slow()
    with ThreadPoolExecutor(CALLERS) as pool:
        calls = waiting(pool, shared, task)
        assert shared("other", lambda: 8) == 8  # meanwhile another key is nobody's business
        while sum(call.running() for call in calls) < CALLERS:
            pass
        task.go.set()
        assert {call.result() for call in calls} == {7}
    assert task.times < CALLERS


def test_whoever_comes_afterwards_begins_anew() -> None:
    shared, task = SharedWork(), Slow()
    task.go.set()
    assert [shared("key", task), shared("key", task), task.times] == [7, 7, 2]


def test_an_error_reaches_whoever_waits_and_is_not_kept() -> None:
    shared, task = SharedWork(), Slow(ValueError("no"))
    with ThreadPoolExecutor(CALLERS) as pool:
        calls = waiting(pool, shared, task)
        task.go.set()
        for call in calls:
            with pytest.raises(ValueError, match="no"):
                call.result()
    assert shared("key", lambda: 9) == 9
