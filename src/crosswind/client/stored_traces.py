"""Answers about the stored traces of runs: the same for the client, the API and the pages.

A server keeps them as long as the traces stay what they are, whatever else is stored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.store.store import Store
from crosswind.data.store.traced_runs import stream_of_run, traced_among, traces_of_run

if TYPE_CHECKING:
    from crosswind.client.compute import Compute
    from crosswind.data.schema.answers.trace_difference import RunsDifference
    from crosswind.data.schema.answers.traces import TracedRun, TraceReport, TraceWhatIf

NAMES_MAX = 1000  # kernels and operators of a report
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Kept(Generic[Answer]):
    """An answer to a question that names the content of the traces."""

    value: Answer
    keep_seconds: ClassVar[float] = 86_400.0


def report_on(store: Store, traced: TracedRun) -> Kept[TraceReport]:
    """Return the report of a run's traces, with NAMES_MAX names. Raises: NotFoundError, InvalidInputError."""
    from crosswind.models.traces.report import trace_report  # noqa: PLC0415 - heavy

    return Kept(trace_report(stream_of_run(store, traced.run_id), top=NAMES_MAX))


def report_on_steps(store: Store, run_id: str) -> TraceReport:
    """Return the report of a run without traces, by the probe's steps. Raises: NotFoundError, InvalidInputError."""
    from crosswind.models.traces.report import trace_report  # noqa: PLC0415 - heavy
    from crosswind.models.traces.several.probe_steps import ranks_of_run  # noqa: PLC0415

    return trace_report(ranks_of_run(store, run_id), top=NAMES_MAX)


def report_and_replays(store: Store, traced: TracedRun) -> Kept[tuple[TraceReport, tuple[TraceWhatIf, ...]]]:
    """Return the report of a run's traces and their replays. Raises: NotFoundError, InvalidInputError."""
    from crosswind.models.traces.report_what_if import report_and_what_ifs  # noqa: PLC0415 - heavy

    return Kept(report_and_what_ifs(stream_of_run(store, traced.run_id)))


def difference_from(store: Store, first: TracedRun, second: TracedRun) -> Kept[RunsDifference]:
    """Return by what the steps of a run differ from another one's. Raises: NotFoundError, InvalidInputError."""
    from crosswind.models.traces.difference.difference import difference  # noqa: PLC0415 - heavy

    return Kept(difference(*(traces_of_run(store, one.run_id) for one in (first, second))))


def difference_without_traces(store: Store, first_id: str, second_id: str) -> RunsDifference:
    """Return the same by the probe's records of their steps. Raises: as `difference_of_runs`."""
    from crosswind.models.traces.difference.of_runs import difference_of_runs  # noqa: PLC0415 - heavy

    return difference_of_runs(store, first_id, second_id)


def trace_of_run(store: Store, compute: Compute, run_id: str, top: int) -> TraceReport:
    """Return a run's report, by the probe's steps without traces, with so many names of each kind.

    Raises: NotFoundError, InvalidInputError.
    """
    if top > NAMES_MAX:
        raise InvalidInputError(f"top {top}: expected at most {NAMES_MAX} kernels and operators of a stored run")
    with store.catalog.read() as session:
        traced = traced_among(store, [session.runs.get(run_id)]).get(run_id)
    report = compute(store, report_on_steps, run_id) if traced is None else compute(store, report_on, traced).value
    path = replace(report.critical_path, names=report.critical_path.names[:top])
    return replace(report, kernels=report.kernels[:top], operators=report.operators[:top], critical_path=path)


def trace_difference(store: Store, compute: Compute, first_id: str, second_id: str) -> RunsDifference:
    """Return by what the second run's steps differ, by their traces, or by the probe's steps unless both have some.

    Raises: NotFoundError; InvalidInputError for one run twice, or a run without steps; MalformedError.
    """
    with store.catalog.read() as session:
        runs = [session.runs.get(run_id) for run_id in (first_id, second_id)]
    traced = traced_among(store, runs)
    if first_id == second_id or len(traced) < 2:
        return compute(store, difference_without_traces, first_id, second_id)
    return compute(store, difference_from, traced[first_id], traced[second_id]).value
