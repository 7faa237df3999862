"""Work that is waited for so long and no longer, alone or several at once."""

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

AT_ONCE = 8
IDLE_MAX = 4 * AT_ONCE
Answer = TypeVar("Answer")


def within(seconds: float, work: Callable[[], Answer]) -> Answer:
    """Return what the work returns, which goes on without us after so long. Raises: TimeoutError; as the work."""
    future = _begun(work)
    try:
        return future.result(max(seconds, 0.0))
    except TimeoutError as error:
        raise TimeoutError(f"it took longer than {seconds:.0f} s") from error


def at_once(works: Iterable[Callable[[], None]]) -> None:
    """Do some of them at the same time, until all are done or one fails. Raises: as the first that fails."""
    queue: SimpleQueue[Callable[[], None]] = SimpleQueue()
    for work in works:
        queue.put(work)
    failures: list[BaseException] = []

    def do() -> None:
        with suppress(Empty):
            while not failures:
                _do(queue.get_nowait(), failures)

    for future in [_begun(do) for _ in range(min(AT_ONCE, queue.qsize()))]:
        future.result()
    if failures:
        raise failures[0]


def end_idle() -> None:
    """Let the threads end that wait for work here."""
    with suppress(IndexError):
        while True:
            thread = IDLE.pop()
            thread.orders.put(None)
            thread.join()


def _begun(work: Callable[[], Answer]) -> "Future[Answer]":
    """Begin work in a thread that has none, or in a new one: an executor's would keep the process from ending."""
    future: Future[Answer] = Future()
    try:
        thread = IDLE.pop()
    except IndexError:
        thread = _Thread()
        thread.start()
    thread.orders.put((future, work))
    return future


class _Thread(threading.Thread):
    """A thread that does one work after the other."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.orders: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()

    def run(self) -> None:
        """Work until nobody needs it."""
        while order := self.orders.get():
            if not self._fulfil(*order):
                return
            del order  # what it holds need not wait for the next

    def _fulfil(self, future: "Future[Any]", work: Callable[[], Any]) -> bool:
        """Return whether more may come, which may do so from before the answer is there."""
        try:
            tell = partial(future.set_result, work())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            tell = partial(future.set_exception, error)
        if is_kept := len(IDLE) < IDLE_MAX:
            IDLE.append(self)
        tell()
        return is_kept


IDLE: list[_Thread] = []  # those without work: to start one costs more than to send a small object
os.register_at_fork(after_in_child=IDLE.clear)  # a child has none of them


def _do(work: Callable[[], None], failures: list[BaseException]) -> None:
    try:
        work()
    except BaseException as error:  # noqa: BLE001 - raised where the others are waited for
        failures.append(error)
