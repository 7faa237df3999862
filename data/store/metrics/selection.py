"""Samples that a question is about, and of these the ones that may be seen.

Of a node somebody without a further role sees the times in which a job or run that they may see was on it: what the
node's counters did at other times is somebody else's work.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from crosswind.data.catalog.catalog import Session
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.lake.parts import Span
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.hostlist import expand
from crosswind.data.schema.part import Part
from crosswind.data.schema.run import Run
from crosswind.data.schema.series_question import SeriesQuestion
from crosswind.data.store.allocations import allocations_seen
from crosswind.data.store.join import accounted_intervals, allocated, run_intervals
from crosswind.data.store.node_intervals import FOREVER, NodeInterval
from crosswind.data.store.store import Store

LOOKED_AT = 2000  # newest jobs and runs that say when somebody was on which nodes
ALLOCATIONS_MAX, RUNS_OF_JOB_MAX = 10_000, 1000
HOUR_NS = 3_600_000_000_000


@dataclass(frozen=True)
class Selection:
    """The samples that are wanted: of these runs, or of nodes, within their intervals; None: all nodes, at any time.

    `devices` are those of nodes that are wanted, all where there are none. `span` is the time of them all, [begin, end)
    in ns UTC. `is_cut`: other times on these nodes are somebody else's.
    """

    span: Span
    run_ids: tuple[str, ...]
    intervals: tuple[NodeInterval, ...] | None
    is_cut: bool
    devices: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Named:
    """Runs that a question names, by themselves or by their job, and the times of these on nodes."""

    runs: tuple[Run, ...]
    intervals: tuple[NodeInterval, ...]


def select(store: Store, question: SeriesQuestion, now_ns: int) -> Selection:
    """Return the samples that are wanted and may be seen. Raises: NotFoundError, InvalidInputError."""
    named = _named(store, question)
    span = _span(question, named, now_ns)
    intervals = named.intervals if named else _seen_intervals(store)
    if question.nodes:
        intervals = _on(question.nodes, intervals, span)
    return Selection(
        span,
        run_ids=tuple(run.run_id for run in named.runs) if named else (),
        intervals=None if intervals is None else merged(intervals, span),
        is_cut=named is not None or not store.rule.sees_all,
        devices=question.devices,
    )


def _seen_intervals(store: Store) -> tuple[NodeInterval, ...] | None:
    return None if store.rule.sees_all else tuple(times_seen(store))


def times_seen(store: Store) -> list[NodeInterval]:
    """Return when the newest jobs and runs that may be seen were on which nodes, by all names of these."""
    spans = store.jobs.newest_spans(limit=LOOKED_AT)
    intervals = [NodeInterval(node, one.started_ns, one.ended_ns) for one in spans for node in expand(one.nodes)]
    with store.catalog.read() as session:
        runs = session.runs.find(limit=LOOKED_AT)
        intervals += [interval for run in runs for interval in _of_record(run)]
        return _as_sampled(session, intervals)


def merged(intervals: Iterable[NodeInterval], span: Span) -> tuple[NodeInterval, ...]:
    """Return the intervals cut to the span, those that overlap made one, by node and time."""
    by_node: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for interval in intervals:
        begin_ns, end_ns = max(interval.begin_ns, span[0]), min(interval.end_ns, span[1])
        if begin_ns < end_ns:
            by_node[interval.node].append((begin_ns, end_ns))
    return tuple(NodeInterval(node, *one) for node in sorted(by_node) for one in _union(sorted(by_node[node])))


def _union(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for begin_ns, end_ns in spans:
        if joined and begin_ns <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end_ns)
        else:
            joined.append((begin_ns, end_ns))
    return joined


def _on(nodes: Sequence[str], intervals: Sequence[NodeInterval] | None, span: Span) -> tuple[NodeInterval, ...]:
    """Return the intervals on these nodes; of all intervals, the whole span."""
    if intervals is None:
        return tuple(NodeInterval(node, *span) for node in nodes)
    return tuple(interval for interval in intervals if interval.node in nodes)


def _span(question: SeriesQuestion, named: _Named | None, now_ns: int) -> Span:
    begins = [interval.begin_ns for interval in named.intervals] if named else []
    begins += [run.started_ns for run in named.runs if run.started_ns is not None] if named else []
    ends = [interval.end_ns for interval in named.intervals] if named else []
    ends += [FOREVER if run.ended_ns is None else run.ended_ns for run in named.runs] if named else []
    to_ns = question.to_ns if question.to_ns is not None else min(max(ends, default=now_ns), now_ns)
    from_ns = question.from_ns if question.from_ns is not None else min(begins, default=max(0, to_ns - HOUR_NS))
    if from_ns >= to_ns:
        raise InvalidInputError(f"from {from_ns}, to {to_ns} (ns UTC): expected a time that is later than from")
    return from_ns, to_ns


def _named(store: Store, question: SeriesQuestion) -> _Named | None:
    if question.job is not None:
        return _of_job(store, question.job, question.system)
    if not question.runs:
        return None
    with store.catalog.read() as session:
        runs = tuple(session.runs.get(run_id) for run_id in question.runs)
        return _Named(runs, tuple(interval for run in runs for interval in _of_run(session, run)))


def _of_job(store: Store, job_id: str, system: str | None) -> _Named:
    jobs = [job for job in store.jobs.named(job_id) if system in (None, job.system)]
    allocations = [
        one
        for one in allocations_seen(store, job_id, Part(ALLOCATIONS_MAX, "system"))
        if system is None or one.system in (system, "")
    ]
    with store.catalog.read() as session:
        runs = session.runs.find(RunFilter(system=system, job_id=job_id), limit=RUNS_OF_JOB_MAX)
        systems = {job.system for job in jobs} | {one.system for one in allocations} | {run.system for run in runs}
        if len(systems - {""}) > 1:
            names = ", ".join(sorted(systems - {""}))
            raise InvalidInputError(f"system: job {job_id!r:.80} is of several, {names}: name one")
        if not systems:
            raise NotFoundError(f"job {job_id!r:.80} is not in the store")
        intervals = allocated(allocations, jobs[0] if jobs else None) if allocations else []
        intervals = intervals or _as_sampled(session, accounted_intervals(jobs[0] if jobs else None))
        intervals += [interval for run in runs for interval in _of_run(session, run)]
    return _Named(tuple(runs), tuple(intervals))


def _of_run(session: Session, run: Run) -> list[NodeInterval]:
    return _as_sampled(session, run_intervals(session, run))


def _of_record(run: Run) -> list[NodeInterval]:
    end_ns = FOREVER if run.ended_ns is None else run.ended_ns
    return [] if run.started_ns is None else [NodeInterval(node, run.started_ns, end_ns) for node in run.nodes]


def _as_sampled(session: Session, intervals: Sequence[NodeInterval]) -> list[NodeInterval]:
    """Return the intervals, and the same under the further names by which their nodes are sampled."""
    names = session.places.sampled_names({interval.node for interval in intervals})
    further = [replace(one, node=name) for one in intervals for name in sorted(names.get(one.node, ()))]
    return [*intervals, *further]
