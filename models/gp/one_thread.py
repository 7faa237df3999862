"""Linear algebra on one thread: small matrices lose more to several than they gain."""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which NumPy's and SciPy's libraries of linear algebra use one thread each."""
    return _controller().limit(limits=1)  # type: ignore[no-any-return]


@cache
def _controller() -> ThreadpoolController:
    """Look up the loaded libraries, once: it takes milliseconds, as long as some suggestions."""
    import scipy.linalg  # noqa: F401, PLC0415 - heavy; it loads a library of its own

    return ThreadpoolController()
