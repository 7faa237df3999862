"""A node and its history as a terminal shows them."""

from collections.abc import Iterator, Sequence

from crosswind.cli.text.output import table
from crosswind.dashboards.wording import NONE, percent, quantity, seconds, times, utc
from crosswind.data.schema.answers.checks import EarlierChecks
from crosswind.data.schema.answers.nodes import NodeHistory, NodeJob, NodeReport, NodeRun, NodeState
from crosswind.data.schema.answers.stragglers import RankedPeer
from crosswind.data.schema.checks import QUANTITIES
from crosswind.data.schema.words import words

RUN_HEADINGS = ("run", "workload", "state", "started", "took", "verdict", "cause")
JOB_HEADINGS = ("job", "name", "user", "state", "started", "took")


def node_text(report: NodeReport, history: NodeHistory) -> str:
    """Return a node as it is now, and what was on it, measured and missed from one moment to another."""
    return "\n".join([*_now(report), "", f"{utc(history.from_ns)} to {utc(history.to_ns)}", *_parts(history)])


def _now(report: NodeReport) -> Iterator[str]:
    others = ", ".join(name for name in report.names if name != report.node)
    yield f"{report.node}{f' ({others})' if others else ''} of {', '.join(report.systems) or 'no system'}"
    yield "no samples in the last hour" if report.state is None else _agent(report.state)
    running = [*(f"job {job.job_id}" for job in report.jobs), *(f"run {run.run_id}" for run in report.runs)]
    yield f"now: {', '.join(running) or 'nothing'}"


def _agent(state: NodeState) -> str:
    down = ", ".join(source.name for source in state.sources_down)
    cost = f"agent at {percent(state.cpu_ratio)} of a core"
    return f"last sample {utc(state.last_sweep_ns)}, {cost}{f', down: {down}' if down else ''}"


def _parts(history: NodeHistory) -> Iterator[str]:
    gaps = [(utc(one.begin_ns), utc(one.end_ns), seconds(one.seconds)) for one in history.gaps]
    yield from _part("runs", RUN_HEADINGS, list(map(_run, history.runs)))
    yield from _part("jobs", JOB_HEADINGS, list(map(_job, history.jobs)))
    yield from _part("checks", ("check", "of", "newest", "before", "measured"), list(map(_check, history.checks)))
    yield from _part("place among stragglers", ("peer", "ratio", "slower?", "since"), list(map(_peer, history.ranking)))
    yield from _part("gaps in its samples", ("from", "to", "for"), gaps)


def _part(name: str, headings: Sequence[str], lines: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"\n{name}"
    yield table(headings, lines) if lines else "none"


def _run(one: NodeRun) -> tuple[str, ...]:
    cause = words(one.cause) if one.cause else NONE
    times_of = (utc(one.started_ns), _took(one.started_ns, one.ended_ns))
    return one.run_id, one.workload, one.state, *times_of, one.verdict or NONE, cause


def _job(one: NodeJob) -> tuple[str, ...]:
    facts = (one.job_id, one.name or NONE, one.user or NONE, one.state or NONE)
    return *facts, utc(one.started_ns), _took(one.started_ns, one.ended_ns)


def _took(begin_ns: int | None, end_ns: int | None) -> str:
    return NONE if begin_ns is None or end_ns is None else seconds((end_ns - begin_ns) / 1e9)


def _check(one: EarlierChecks) -> tuple[str, ...]:
    unit = QUANTITIES[one.measure].unit
    before = quantity(one.values[1], unit) if len(one.values) > 1 else NONE
    return words(one.measure), one.peer or one.device or NONE, quantity(one.values[0], unit), before, utc(one.at_ns[0])


def _peer(one: RankedPeer) -> tuple[str, ...]:
    return f"{one.kind} {one.name}", times(one.ratio), percent(one.chance_slower), utc(one.since_ns)
