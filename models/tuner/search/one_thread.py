"""Linear algebra on one thread: small matrices lose more to several than they gain."""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


def one_thread() -> AbstractContextManager[Any]:
    """Return a context that uses one thread of each library of linear algebra that was loaded before the first use."""
    return _controller().limit(limits=1)  # type: ignore[no-any-return]


@cache
def _controller() -> ThreadpoolController:
    """Look up the loaded libraries, once: it takes milliseconds, as long as some suggestions."""
    return ThreadpoolController()
