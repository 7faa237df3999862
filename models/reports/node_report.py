"""One node: now, and over a time."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Self

from crosswind.data.lake.parts import ALWAYS, Span
from crosswind.data.schema.answers.checks import EarlierChecks
from crosswind.data.schema.answers.nodes import NodeHistory, NodeJob, NodeReport, NodeRun, NodeState
from crosswind.data.schema.answers.stragglers import PeerKind, PeerRanking, RankedPeer
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.job import Job
from crosswind.data.schema.node_question import LISTED, HistoryQuestion
from crosswind.data.schema.occupancy import Allocation
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.run_verdict import RunVerdict
from crosswind.data.store.fleet import node_state
from crosswind.data.store.gaps import gaps_of
from crosswind.data.store.metrics.selection import merged, times_seen
from crosswind.data.store.node_intervals import NodeInterval
from crosswind.data.store.store import Store
from crosswind.models.preflight.history import earlier_checks

RUNS_LOOKED_AT, JOBS_LOOKED_AT = 20_000, 2000  # newest before the end of a history
HOUR_NS = 3_600_000_000_000
ENDED = "ended"  # an allocation that its agent saw ending
RUNNING = (None, "RUNNING", "COMPLETING", "SUSPENDED")


@dataclass(frozen=True)
class _Node:
    """A node by all of its names, in a store, with its jobs that began before `end_ns`, newest first."""

    store: Store
    names: frozenset[str]
    end_ns: int
    every_job: tuple[NodeJob, ...]

    @classmethod
    def named(cls, store: Store, node: str, end_ns: int) -> Self:
        """Return a node. Raises: NotFoundError for one of which nothing is stored that may be seen."""
        with store.catalog.read() as session:
            names = frozenset(session.places.names_of(node))
        one = cls(store, names, end_ns, _jobs(store, names, end_ns))
        if one.every_job or one.runs(ALWAYS, 1) or one.state(ALWAYS):
            return one
        raise NotFoundError(
            f"node {node!r:.80}: nothing of it is stored: crosswind nodes lists those that send samples"
        )

    def jobs(self, begin_ns: int, limit: int) -> tuple[NodeJob, ...]:
        """Return its newest jobs that had not ended before."""
        return tuple(job for job in self.every_job if job.ended_ns is None or job.ended_ns >= begin_ns)[:limit]

    def runs(self, span: Span, limit: int) -> tuple[NodeRun, ...]:
        """Return its newest runs in a time."""
        with self.store.catalog.read() as session:
            runs = session.runs.on_nodes(self.names, span, looked_at=RUNS_LOOKED_AT, limit=limit)
            verdicts = session.verdicts.get([run.run_id for run in runs])
        return tuple(_of_run(run, verdicts.get(run.run_id, RunVerdict(run.run_id))) for run in runs)

    def state(self, span: Span) -> NodeState | None:
        """Return the state of its agent in a time."""
        states = [node_state(self.store, name, span) for name in sorted(self.names)]
        return max((one for one in states if one), key=lambda one: one.last_sweep_ns, default=None)

    def systems(self) -> tuple[str, ...]:
        """Return the systems of its newest job and run."""
        of_jobs = {job.system for job in self.every_job[:1] if job.system}
        return tuple(sorted(of_jobs | {run.system for run in self.runs((0, self.end_ns), 1)}))

    def checks(self, systems: Iterable[str], span: Span) -> tuple[EarlierChecks, ...]:
        """Return measurements of it, or of pairs with it, in a time."""
        every = (one for system in systems for one in earlier_checks(self.store.lake, system))
        cut = (_within(one, span) for one in every if {one.node, one.peer} & self.names)
        return tuple(one for one in cut if one.at_ns)

    def watched(self, span: Span) -> tuple[NodeInterval, ...]:
        """Return when its samples may be seen: always, or in the times of one's own jobs and runs."""
        if self.store.rule.sees_all:
            return tuple(NodeInterval(name, *span) for name in sorted(self.names))
        return merged((one for one in times_seen(self.store) if one.node in self.names), span)


def node_report(store: Store, node: str) -> NodeReport:
    """Return a node as it is now. Raises: NotFoundError for one of which nothing is stored that may be seen."""
    now_ns = time.time_ns()
    one = _Node.named(store, node, now_ns)
    return NodeReport(
        node,
        names=tuple(sorted(one.names)),
        systems=one.systems(),
        state=one.state((now_ns - HOUR_NS, now_ns)),
        jobs=tuple(job for job in one.jobs(now_ns, LISTED) if job.state in RUNNING),
        runs=tuple(run for run in one.runs((now_ns, now_ns), LISTED) if run.state is RunState.RUNNING),
    )


def node_history(store: Store, node: str, question: HistoryQuestion, rank: Callable[[str], PeerRanking]) -> NodeHistory:
    """Return a node's time; `rank` ranks the stragglers of a system.

    Raises: NotFoundError for a node of which nothing is stored that may be seen; InvalidInputError; MalformedError.
    """
    span = question.span(time.time_ns())
    one = _Node.named(store, node, span[1])
    systems = one.systems()
    return NodeHistory(
        node,
        *span,
        jobs=one.jobs(span[0], question.limit),
        runs=one.runs(span, question.limit),
        checks=one.checks(systems, span),
        ranking=tuple(peer for system in systems for peer in rank(system).ranked if _is_of(peer, one.names)),
        gaps=gaps_of(store, one.watched(span), limit=question.limit),
        state=one.state(span),
    )


def _jobs(store: Store, names: frozenset[str], end_ns: int) -> tuple[NodeJob, ...]:
    """Return jobs by their scheduler's accounts and, where these have none, by what agents recorded."""
    accounts = [job for job in store.jobs.find(before=(end_ns, "", ""), limit=JOBS_LOOKED_AT) if names & {*job.nodes}]
    keys = {(job.system, job.job_id) for job in accounts}
    with store.catalog.read() as session:
        allocations = session.places.allocations_on(names, 0, end_ns)
        seen = {*store.rule.jobs, *session.runs.jobs(limit=JOBS_LOOKED_AT)}
    others = [one for one in allocations if (one.system, one.job_id) not in keys]
    if not store.rule.sees_all:
        others = [one for one in others if (one.system, one.job_id) in seen]
    every = [*map(_of_account, accounts), *map(_of_allocation, others)]
    return tuple(sorted(every, key=lambda job: (-(job.started_ns or 0), job.job_id)))


def _of_account(job: Job) -> NodeJob:
    return NodeJob(job.job_id, job.system, job.name, job.user, job.state, job.started_ns, job.ended_ns)


def _of_allocation(one: Allocation) -> NodeJob:
    state = None if one.ended_ns is None else ENDED
    return NodeJob(one.job_id, one.system or None, None, None, state, one.started_ns, one.ended_ns)


def _of_run(run: Run, judged: RunVerdict) -> NodeRun:
    facts = (run.run_id, run.workload, run.system, run.state, run.started_ns, run.ended_ns)
    return NodeRun(*facts, verdict=judged.verdict, cause=judged.cause)


def _within(checks: EarlierChecks, span: Span) -> EarlierChecks:
    kept = [(at, value) for at, value in zip(checks.at_ns, checks.values, strict=True) if span[0] <= at < span[1]]
    return replace(checks, at_ns=tuple(at for at, _ in kept), values=tuple(value for _, value in kept))


def _is_of(peer: RankedPeer, names: frozenset[str]) -> bool:
    """Return whether it is the node, or one of its devices, whose names begin with the node's."""
    return peer.kind in (PeerKind.NODE, PeerKind.DEVICE) and peer.name.partition(" ")[0] in names
