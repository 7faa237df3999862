"""Processor time and memory of a piece of work, after everything is imported."""

import json
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def report(work: Callable[[], dict[str, Any]]) -> None:
    """Do the work, and print as the last line what it used and what it returns."""
    imported, began, at = resident("VmHWM"), cpu_seconds(), time.perf_counter()
    answer = work()
    used = {"cpu_seconds": cpu_seconds() - began, "seconds": time.perf_counter() - at}
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    memory = {"imported_megabytes": imported, "peak_megabytes": max(resident("VmHWM"), children)}
    print(json.dumps(used | memory | answer))


def cpu_seconds() -> float:
    """Return user and system seconds of this process and of those that it waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def resident(name: str) -> float:
    """Return VmRSS, or VmHWM, the most so far, in MiB. Source: proc_pid_status(5)."""
    [line] = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) / 1024
