"""Work that several callers ask for at once, done once."""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")


class SharedWork:
    """Tasks in progress by key: whoever comes while one is done waits for it, and gets its result or its error.

    Nothing is kept: whoever comes afterwards begins anew.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._futures: dict[Hashable, Future[Any]] = {}

    def __call__(self, key: Hashable, task: Callable[[], T]) -> T:
        """Return the task's result, of the one in progress with this key if there is one. Raises: as the task."""
        with self._lock:
            future = self._futures.get(key)
            is_own = future is None
            if future is None:
                future = self._futures[key] = Future()
        if is_own:
            self._do(key, future, task)
        result: T = future.result()
        return result

    def _do(self, key: Hashable, future: Future[Any], task: Callable[[], object]) -> None:
        try:
            result = task()
        except BaseException as error:  # noqa: BLE001 - everybody who waits raises it
            self._end(key)
            future.set_exception(error)
        else:
            self._end(key)
            future.set_result(result)

    def _end(self, key: Hashable) -> None:
        with self._lock:
            del self._futures[key]
