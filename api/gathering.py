"""Work that is cheaper together: what comes while others are being worked on is worked on as one group."""

from asyncio import Future, Task, create_task, current_task, get_running_loop
from collections.abc import Awaitable, Callable, Sequence
from itertools import accumulate
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
GROUPS = 2  # at once, where many wait: one computes while the other waits for the disk
MANY = 8  # for whom a second group is worth its cost


class Gathering(Generic[Item, Result]):
    """Passes items to `work` in groups: as soon as none is in progress, or fewer than GROUPS are and MANY items wait.

    A group has at most `at_most` items, whose sizes are together at most `size_at_most` where there are several.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
        at_most: int,
        size: Callable[[Item], int] = lambda _: 0,
        size_at_most: int = 0,
    ) -> None:
        self._work = work
        self._at_most = at_most
        self._size = size
        self._size_at_most = size_at_most
        self._waiting: list[tuple[Item, Future[Result]]] = []
        self._working: set[Task[None] | None] = set()

    async def result(self, item: Item) -> Result:
        """Return what the work made of this item. Raises: as the work."""
        future: Future[Result] = get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._is_time(len(self._working)):
            self._working.add(create_task(self._work_on_all()))
        return await future

    def _is_time(self, others: int) -> bool:
        """Return whether a group begins now, beside so many others."""
        return bool(self._waiting) and (others == 0 or (others < GROUPS and len(self._waiting) >= MANY))

    async def _work_on_all(self) -> None:
        try:
            while self._is_time(len(self._working) - 1):
                fitting = self._fitting()
                group, self._waiting = self._waiting[:fitting], self._waiting[fitting:]
                await self._work_on([(item, future) for item, future in group if not future.done()])
        finally:  # and not in a callback of the task: until that ran, an item would wait for a task that has ended
            self._working.remove(current_task())

    def _fitting(self) -> int:
        """Return how many of those that wait are the next group."""
        sizes = accumulate(self._size(item) for item, _ in self._waiting[: self._at_most])
        return max(1, sum(size <= self._size_at_most for size in sizes))

    async def _work_on(self, group: Sequence[tuple[Item, Future[Result]]]) -> None:
        try:
            results = await self._work([item for item, _ in group])
            for (_, future), result in zip(group, results, strict=True):
                if not future.done():
                    future.set_result(result)
        except Exception as error:  # noqa: BLE001 - each who waits gets it
            for _, future in group:
                if not future.done():
                    future.set_exception(error)
