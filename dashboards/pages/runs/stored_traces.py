"""The answers about a run's stored traces that a page shows, kept as long as the traces stay what they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from crosswind.client.local import Local
from crosswind.dashboards.figures.traces.pop import EarlierPop
from crosswind.data.schema.answers.trace_difference import RunsDifference
from crosswind.data.schema.answers.traces import TracedRun, TraceReport, TraceWhatIf
from crosswind.data.schema.run import Run
from crosswind.data.store.store import Store
from crosswind.data.store.traced_runs import traced_among, traces_of_run

EARLIER = 3  # runs of the cohort whose metrics are shown beside
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Kept(Generic[Answer]):
    """An answer to a question that names the content of the traces: it holds whatever else is stored."""

    value: Answer
    keep_seconds: ClassVar[float] = 86_400.0


def report_on(store: Store, traced: TracedRun) -> Kept[TraceReport]:
    """Return the report of a run's traces. Raises: NotFoundError, InvalidInputError."""
    from crosswind.models.traces.report import trace_report  # noqa: PLC0415 - heavy

    return Kept(trace_report(traces_of_run(store, traced.run_id)))


def report_and_replays(store: Store, traced: TracedRun) -> Kept[tuple[TraceReport, tuple[TraceWhatIf, ...]]]:
    """Return the report of a run's traces and their replays. Raises: NotFoundError, InvalidInputError."""
    from crosswind.models.traces.report_what_if import report_and_what_ifs  # noqa: PLC0415 - heavy

    return Kept(report_and_what_ifs(traces_of_run(store, traced.run_id)))


def difference_from(store: Store, earlier: TracedRun, traced: TracedRun) -> Kept[RunsDifference]:
    """Return by what the steps of a run differ from an earlier one's. Raises: NotFoundError, InvalidInputError."""
    from crosswind.models.traces.difference.difference import difference  # noqa: PLC0415 - heavy

    return Kept(difference(*(traces_of_run(store, one.run_id) for one in (earlier, traced))))


def traced_peers(client: Local, peers: Sequence[Run]) -> list[tuple[Run, TracedRun]]:
    """Return those of these runs that have traces, the newest first."""
    traced = traced_among(client.store, peers)
    newest = sorted((peer for peer in peers if peer.run_id in traced), key=lambda peer: -(peer.started_ns or 0))
    return [(peer, traced[peer.run_id]) for peer in newest]


def earlier_pops(client: Local, earlier: Sequence[TracedRun], over: str) -> tuple[EarlierPop, ...]:
    """Return the metrics of earlier runs over such locations."""
    reports = ((one.run_id, client.compute(client.store, report_on, one).value) for one in earlier)
    return tuple(EarlierPop(run_id, pop) for run_id, report in reports for pop in report.pop if pop.over == over)
