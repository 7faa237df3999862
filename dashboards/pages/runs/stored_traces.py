"""The earlier runs whose traces a page shows beside those of a run."""

from collections.abc import Sequence

from crosswind.client.local import Local
from crosswind.client.stored_traces import report_on
from crosswind.dashboards.figures.traces.pop import EarlierPop
from crosswind.data.schema.answers.traces import TracedRun
from crosswind.data.schema.run import Run
from crosswind.data.store.traced_runs import traced_among

EARLIER = 3  # runs of the cohort whose metrics are shown beside


def traced_peers(client: Local, peers: Sequence[Run]) -> list[tuple[Run, TracedRun]]:
    """Return those of these runs that have traces, the newest first."""
    traced = traced_among(client.store, peers)
    newest = sorted((peer for peer in peers if peer.run_id in traced), key=lambda peer: -(peer.started_ns or 0))
    return [(peer, traced[peer.run_id]) for peer in newest]


def earlier_pops(client: Local, earlier: Sequence[TracedRun], over: str) -> tuple[EarlierPop, ...]:
    """Return the metrics of earlier runs over such locations."""
    reports = ((one.run_id, client.compute(client.store, report_on, one).value) for one in earlier)
    return tuple(EarlierPop(run_id, pop) for run_id, report in reports for pop in report.pop if pop.over == over)
