"""Our work: `python -m benchmarks.traces.work analyse|read|reopen PATH [CACHE]`."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.traces.usage import report
from crosswind.data.traces.cache import TraceCache
from crosswind.data.traces.trace import Kind
from crosswind.ingest.readers.traces.files import read_traces, stream_traces
from crosswind.models.traces.breakdown import breakdown
from crosswind.models.traces.pop import pop_of_devices, use_of_devices

FOR_CLOCKS = Kind.COLLECTIVE, Kind.STEP  # no more of a rank stays in memory


def analyse(path: Path) -> dict[str, Any]:
    """Return breakdown, overlap and POP of a folder's ranks, one rank whole in memory at a time.

    As the peer does, it leaves out what was launched before the trace began.
    """
    breakdowns, kept, uses = [], [], []
    for trace in (trace.launched_within() for trace in stream_traces([path])):
        breakdowns.append(breakdown(trace))
        uses.append(use_of_devices(trace))
        kept.append(replace(trace, events=trace.events.of(*FOR_CLOCKS)))
    pop = pop_of_devices(kept, uses=uses)
    return {
        "compute_us": [(one.compute_ns + one.overlapped_ns) / 1e3 for one in breakdowns],
        "overlap": [round(one.overlap_share, 4) for one in breakdowns],
        "parallel_efficiency": round(pop.parallel, 4),
    }


def read(path: Path) -> dict[str, Any]:
    """Return how many events a file has."""
    return {"events": sum(len(trace.events) for trace in read_traces([path]))}


def reopen(path: Path, cache: Path) -> dict[str, Any]:
    """Return how many events a file has, out of the cache if it was read before."""
    return {"events": sum(len(trace.events) for trace in read_traces([path], cache=TraceCache(cache)))}


if __name__ == "__main__":
    name, *paths = sys.argv[1:]
    report(lambda: {"analyse": analyse, "read": read, "reopen": reopen}[name](*map(Path, paths)))
