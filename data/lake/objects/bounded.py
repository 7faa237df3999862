"""Work that is waited for so long and no longer, alone or several at once."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TypeVar

AT_ONCE = 8
Answer = TypeVar("Answer")


def within(seconds: float, work: Callable[[], Answer]) -> Answer:
    """Return what the work returns, which goes on without us after so long. Raises: TimeoutError; as the work."""
    future: Future[Answer] = Future()

    def do() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            future.set_exception(error)

    threading.Thread(target=do, daemon=True).start()  # an executor's threads would keep the process from ending
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

    threads = [threading.Thread(target=do, daemon=True) for _ in range(min(AT_ONCE, queue.qsize()))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def _do(work: Callable[[], None], failures: list[BaseException]) -> None:
    try:
        work()
    except BaseException as error:  # noqa: BLE001 - raised where the others are waited for
        failures.append(error)
