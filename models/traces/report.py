"""The report of a run's traces: one answer for the command, the API, the client and the page."""

import math
from collections.abc import Iterable, Mapping
from itertools import chain

import numpy as np

from crosswind.data.schema.answers.traces import (
    TracedCollectives,
    TracedPath,
    TracedPop,
    TracedRank,
    TracePart,
    TraceReport,
)
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.question import TRACED_NAMES
from crosswind.data.traces.trace import NONE, RankTrace
from crosswind.models.traces.arrivals import Arrivals, arrivals
from crosswind.models.traces.breakdown import Breakdown
from crosswind.models.traces.collectives import Collectives
from crosswind.models.traces.critical_path import CriticalPath, path_of
from crosswind.models.traces.exposed_waits import step_waits
from crosswind.models.traces.graph.graph import Work
from crosswind.models.traces.kernels import KernelSums
from crosswind.models.traces.late_rank import LateRank, late_rank
from crosswind.models.traces.operators import OperatorTotal
from crosswind.models.traces.pipeline import Pipeline, pipeline
from crosswind.models.traces.pop import Pop, pop_of_devices, pop_of_hosts
from crosswind.models.traces.ranks import absent_notes, alone_notes, ranks_of
from crosswind.models.traces.report_words import verdict
from crosswind.models.traces.several.ranks_read import RanksRead, Several
from crosswind.models.traces.what_if.ideal_network import on_ideal_network

CLASSES = ("compute", "overlapped", "exposed", "memory", "host_bound", "idle")
WORDS: Mapping[str, str] = {"exposed": "exposed communication", "host_bound": "host-bound"}


def trace_report(traces: Iterable[RankTrace], *, top: int = TRACED_NAMES) -> TraceReport:
    """Return the report of the traces of one run, with so many names of each kind.

    Each trace may be freed once the next one is asked for. Raises: InvalidInputError as `ranks_of`, or when nothing
    happens in any trace.
    """
    return report_on(RanksRead.of(traces), top=top)


def report_on(read: RanksRead, *, top: int = TRACED_NAMES) -> TraceReport:
    """Return the same of ranks that were read. Raises: as `trace_report`."""
    of = read.several
    traces = of.traces
    ranks_of(traces)
    if not any(parts.events for parts in read.parts):
        why = "; ".join(dict.fromkeys(note for trace in traces for note in trace.notes))
        raise InvalidInputError(f"{traces[0].source or 'traces'}: no event; expected some to report on ({why:.300})")
    arrived, path = arrivals(traces, of.collectives, of.clocks), path_of(of.graph)
    ranks = tuple(_ranks(read, arrived))
    span = int(path.span_ns)
    all_kernels, all_operators = read.kernels.kernels, read.operators.operators
    notes = chain(*(trace.notes for trace in traces), alone_notes(traces), absent_notes(traces))
    return TraceReport(
        verdict(ranks, span, _late(of, arrived), _pipeline(of)),
        tuple(sorted({trace.format for trace in traces})),
        max((trace.world_size for trace in traces if trace.world_size), default=None),
        span,
        ranks,
        arrived.slowest,
        _types(read.kernels),
        tuple(
            TracePart(one.name, one.total_ns, one.share, one.kind.name.lower(), one.count)
            for one in all_kernels.totals[:top]
        ),
        tuple(map(_operator, all_operators.totals[:top])),
        _by_operation(of.collectives, arrived),
        of.clocks.basis,
        _pop(read),
        _path(path, top),
        tuple(dict.fromkeys(chain(notes, all_kernels.notes, all_operators.notes, path.notes))),
    )


def _late(of: Several, arrived: Arrivals) -> LateRank | None:
    late = arrived.slowest
    return None if late is None else late_rank(late, of.traces, graph=of.graph, offsets=of.clocks, stages=of.stages)


def _pipeline(of: Several) -> Pipeline | None:
    return pipeline(of.traces, of.stages, of.clocks) if len(set(of.stages.values())) > 1 else None


def _ranks(read: RanksRead, arrived: Arrivals) -> Iterable[TracedRank]:
    last, waited, caused = arrived.times_last, arrived.waited_ns, arrived.caused_ns
    traces, offsets = read.several.traces, read.several.clocks
    of_steps = step_waits(traces, read.several.collectives)
    for place, (rank, trace, own) in enumerate(zip(ranks_of(traces), traces, read.parts, strict=True)):
        yield TracedRank(
            rank,
            trace.source,
            own.events,
            own.breakdown.span_ns,
            own.breakdown.locations,
            _classes(own.breakdown),
            _finite(own.breakdown.overlap_share),
            own.step_ns,
            of_steps[place],
            int(last[place]),
            int(waited[place]),
            int(caused[place]),
            tuple(arrived.waits_ns[place].tolist()),
            int(offsets.offset_ns[place]),
            _finite(float(offsets.residual_ns[place])),
        )


def _classes(parts: Breakdown) -> tuple[TracePart, ...]:
    times = {WORDS.get(name, name): getattr(parts, f"{name}_ns") for name in CLASSES}
    return _parts(times.items(), parts.span_ns)


def _parts(times: Iterable[tuple[object, int]], whole: float) -> tuple[TracePart, ...]:
    return tuple(TracePart(str(name), int(ns), ns / whole if whole else 0.0) for name, ns in times)


def _types(sums: KernelSums) -> tuple[TracePart, ...]:
    types = sums.types
    return tuple(TracePart(" and ".join(names), types.busy_ns[names], share) for names, share in types.shares.items())


def _operator(one: OperatorTotal) -> TracePart:
    return TracePart(one.name, one.device_own_ns or one.host_own_ns, one.share, "operator", one.count)


def _by_operation(matched: Collectives, arrived: Arrivals) -> tuple[TracedCollectives, ...]:
    shared = np.flatnonzero(matched.is_in.sum(axis=1) > 1)
    operations = np.array(matched.operation, object)[shared]
    totals = []
    for operation in sorted(set(operations)):
        rows = np.flatnonzero(operations == operation)
        sizes = matched.bytes[shared][rows]
        size = int(sizes.sum()) if (sizes != NONE).all() else None
        transfer, wait = int(arrived.transfer_ns[rows].sum()), int(arrived.wait_ns[rows].sum())
        totals.append(TracedCollectives(operation, len(rows), transfer, wait, size))
    return tuple(sorted(totals, key=lambda one: -(one.transfer_ns + one.wait_ns)))


def _pop(read: RanksRead) -> tuple[TracedPop, ...]:
    of, parts, measured = read.several, read.parts, {}
    if any(own.devices.edges for own in parts):
        measured["devices"] = pop_of_devices(of.traces, of.clocks, [own.devices for own in parts])
    if any(own.has_operators for own in parts):
        measured["hosts"] = pop_of_hosts(of.traces, of.clocks, [own.host for own in parts])
    of_replay = next(iter(measured), "")  # whose activities are in the graph
    return tuple(
        _pop_of(over, on_ideal_network(pop, of.graph) if over == of_replay else pop) for over, pop in measured.items()
    )


def _pop_of(over: str, pop: Pop) -> TracedPop:
    return TracedPop(
        over,
        pop.locations,
        pop.runtime_ns,
        parallel_efficiency=_finite(pop.parallel),
        load_balance=_finite(pop.load_balance),
        communication_efficiency=_finite(pop.communication),
        serialisation=_finite(pop.serialisation),
        transfer=_finite(pop.transfer),
        estimated=pop.is_estimated,
        device_communication=_finite(pop.device_communication),
        orchestration=_finite(pop.orchestration),
        ipc=_finite(pop.ipc),
        frequency_ghz=_finite(pop.frequency_ghz),
        notes=pop.notes,
    )


def _path(path: CriticalPath, top: int) -> TracedPath:
    whole = path.span_ns
    works = _parts(((work_words(work), ns) for work, ns in path.by_work.items()), whole)
    ranks = _parts(((f"rank {rank}", ns) for rank, ns in path.by_rank.items() if ns), whole)
    return TracedPath(whole, works, ranks, _parts(path.by_name(top), whole))


def work_words(work: Work) -> str:
    """Return a class of activities in words."""
    return {Work.START: "before a rank's first event", Work.SYNC: "return of a wait"}.get(work, work.name.lower())


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
