"""Memory that was freed goes back to the system, so that one kind of load is not added to what the next one needs."""

import ctypes
from contextlib import suppress

import pyarrow as pa


def give_back_memory() -> None:
    """Give what was freed back to the system; allocators keep it, in each thread, for later."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # glibc alone
        ctypes.CDLL(None).malloc_trim(0)
