"""Files that this process has open, and a process that may open no further file."""

import gc
import os
import resource
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def open_files() -> Counter[str]:
    """Count how often each file, pipe and socket is open. What earlier tests left to collect may close at any time."""
    counts: Counter[str] = Counter()
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the listing's own is gone
            counts[str(link.readlink())] += 1
    return counts


@contextmanager
def none_left() -> Iterator[None]:
    """Lowers the limit to the descriptors that are open now."""
    gc.collect()  # or it closes some meanwhile
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
