"""Systems: what is stored of each."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.systems import ListedSystem, SystemReport, SystemWorkload
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.hostlist import expand
from crosswind.data.store.run_facts import facts_of_runs
from crosswind.data.store.store import Store

LOOKED_AT = 2000  # newest runs of a system and jobs of all, whose nodes are counted
FACTS_OF = 200  # newest runs of a system, whose accelerators are known


@dataclass
class _System:
    workloads: list[SystemWorkload] = field(default_factory=list)
    nodes: set[str] = field(default_factory=set)
    times: list[int | None] = field(default_factory=list)


def systems(store: Store) -> tuple[SystemReport, ...]:
    """Return every system that runs or jobs may be seen of, by name. Raises: MalformedError."""
    by_name: dict[str, _System] = defaultdict(_System)
    for span in store.jobs.newest_spans(limit=LOOKED_AT):
        by_name[span.system].nodes.update(expand(span.nodes))
        by_name[span.system].times += (span.started_ns, span.ended_ns)
    with store.catalog.read() as session:
        for system, name, runs, from_ns, to_ns in session.runs.by_workload():
            workload = SystemWorkload(name, runs, from_ns, to_ns)
            by_name[system].workloads.append(workload)
            by_name[system].times += (workload.from_ns, workload.to_ns)
        for system, own in by_name.items():
            own.nodes |= session.runs.nodes_of_newest(system, limit=LOOKED_AT)
    return tuple(_report(store, name, by_name[name]) for name in sorted(by_name))


def system_named(reports: Sequence[SystemReport], system: str) -> SystemReport:
    """Return the report of one system. Raises: NotFoundError."""
    for report in reports:
        if report.system.system == system:
            return report
    systems_there = ", ".join(report.system.system for report in reports[:20]) or "none"
    raise NotFoundError(f"system {system!r:.80}: no run or job of it is stored, stored are {systems_there}")


def _report(store: Store, name: str, own: _System) -> SystemReport:
    workloads = tuple(sorted(own.workloads, key=lambda one: (-one.runs, one.workload)))
    times = [ns for ns in own.times if ns is not None]
    listed = ListedSystem(
        system=name,
        runs=sum(one.runs for one in workloads),
        node_count=len(own.nodes),
        workloads=tuple(one.workload for one in workloads),
        accelerators=_accelerators(store, name),
        from_ns=min(times, default=None),
        to_ns=max(times, default=None),
    )
    return SystemReport(listed, workloads, tuple(sorted(own.nodes)))


def _accelerators(store: Store, system: str) -> tuple[str, ...]:
    with store.catalog.read() as session:
        runs = session.runs.find(RunFilter(system=system), limit=FACTS_OF)
    return _distinct(facts.accelerator for facts in facts_of_runs(store, runs))


def _distinct(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted({name for name in names if name}))
