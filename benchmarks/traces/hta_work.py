"""The same work by HolisticTraceAnalysis: `python -m benchmarks.traces.hta_work FOLDER`, where that is installed."""

import sys
from typing import Any

from hta.trace_analysis import TraceAnalysis

from benchmarks.traces.usage import report


def analyse(folder: str) -> dict[str, Any]:
    """Return temporal breakdown and overlap of a folder's ranks, in as many processes as it starts."""
    analysis = TraceAnalysis(trace_dir=folder, include_last_profiler_step=True)
    times = analysis.get_temporal_breakdown(visualize=False).sort_values("rank")
    overlap = analysis.get_comm_comp_overlap(visualize=False).sort_values("rank")
    return {
        "compute_us": times["compute_time(us)"].tolist(),
        "overlap": (overlap["comp_comm_overlap_pctg"] / 100).tolist(),
    }


if __name__ == "__main__":
    report(lambda: analyse(sys.argv[1]))
