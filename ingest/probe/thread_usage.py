"""The kernel's counts for the calling thread."""

import os
import resource
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

Reading = tuple[resource.struct_rusage, bytes | None]  # as the kernel gave it: the loop's thread has no time to look


class ThreadUsage(NamedTuple):
    """Cumulative use of one thread; times in ns, `run_queue_wait_ns` None if the kernel keeps no schedstat."""

    user_ns: int
    system_ns: int
    run_queue_wait_ns: int | None
    minor_faults: int
    major_faults: int
    involuntary_switches: int


class ThreadUsageReader:
    """Reads the use of one thread; 3 us a read, and ten times as long with cold caches."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._schedstat: int | None = None

    def follow(self, thread: int | None = None) -> None:
        """Follow the calling thread, or another one of this process, by the kernel's number; it has to call `read`."""
        self.close()
        place = self._proc / "thread-self" if thread is None else self._proc / "self" / "task" / str(thread)
        try:
            self._schedstat = os.open(place / "schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._schedstat = None

    def read(self) -> Reading:
        """Return the use of the followed thread, which calls this, until now; for `usage_of`."""
        return resource.getrusage(resource.RUSAGE_THREAD), self._schedstat_text()

    def close(self) -> None:
        """Close the file."""
        if self._schedstat is not None:
            with suppress(OSError):  # somebody closed every file of the process
                os.close(self._schedstat)
            self._schedstat = None

    def _schedstat_text(self) -> bytes | None:
        if self._schedstat is None:
            return None
        try:
            return os.pread(self._schedstat, 96, 0)
        except OSError:  # the thread ended, or somebody closed every file of the process
            self._schedstat = None
            return None


def usage_of(reading: Reading) -> ThreadUsage:
    """Return the usage in a reading. Source: getrusage(2); Documentation/scheduler/sched-stats.rst, field 2."""
    usage, text = reading
    return ThreadUsage(
        int(usage.ru_utime * 1e9),
        int(usage.ru_stime * 1e9),
        _run_queue_wait(text),
        usage.ru_minflt,
        usage.ru_majflt,
        usage.ru_nivcsw,
    )


def _run_queue_wait(text: bytes | None) -> int | None:
    try:
        return None if text is None else int(text.split()[1])
    except (IndexError, ValueError):  # somebody closed every file of the process, and opened another one
        return None
