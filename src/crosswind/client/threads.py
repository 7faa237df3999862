"""Threads in which coroutines have work done that waits; of asyncio, and of trio where that runs."""

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cached_property, partial
from importlib import import_module
from typing import Any, TypeVar

from crosswind.client.http import GIVING_UP
from crosswind.ingest.ship.call import GivingUp

T = TypeVar("T")


class Threads:
    """At most so many threads; where a coroutine is cancelled, the requests of its work end at once."""

    def __init__(self, count: int) -> None:
        self._count = count

    async def run(self, work: Callable[[], T], giving_up: GivingUp | None = None) -> T:
        """Return what the work returns; `giving_up` is set where it is cancelled."""
        giving_up = giving_up or GivingUp()
        context = copy_context()
        context.run(GIVING_UP.set, giving_up)
        try:
            return await self._run(partial(context.run, work))
        except BaseException:
            giving_up.set()
            raise

    async def _run(self, work: Callable[[], T]) -> T:
        trio: Any = import_module("trio") if "trio" in sys.modules else None
        if trio and trio.lowlevel.in_trio_run():
            answer: T = await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._limiter)
            return answer
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    @cached_property
    def _executor(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._count, "crosswind")

    @cached_property
    def _limiter(self) -> Any:
        return import_module("trio").CapacityLimiter(self._count)

    def close(self) -> None:
        """Begin nothing more."""
        self._executor.shutdown(wait=False, cancel_futures=True)
