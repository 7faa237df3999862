"""The replays of a run's traces without one cause each, as answers; causes by the names that people give them."""

import re
from collections.abc import Iterable, Sequence

from crosswind.data.schema.answers.traces import TraceReport, TraceWhatIf
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.question import TRACED_NAMES
from crosswind.data.traces.trace import RankTrace
from crosswind.models.traces.arrivals import arrivals
from crosswind.models.traces.report import report_on
from crosswind.models.traces.several.ranks_read import RanksRead, Several
from crosswind.models.traces.what_if.causes import (
    communication_free,
    kernels_faster,
    rank_as_peers,
    sequences_equal,
    stage_balanced,
)
from crosswind.models.traces.what_if.survey import is_table, what_ifs_of
from crosswind.models.traces.what_if.what_if import Cause, WhatIf, what_if_each

CAUSES = ("slow-rank", "rank:N", "communication", "stages", "sequences", "kernels:PATTERN")
TABLE_CAUSES = {"slow-rank": "rank ", "stages": "stage ", "sequences": "sequences "}  # beginnings of its replays' names
TABLE_EXPECTED = "slow-rank, rank:N of a slow one, stages of several, sequences"
FASTER = 2.0  # by how much kernels are taken to be faster
RANK, KERNELS = re.compile(r"rank:(\d{1,6})"), "kernels:"
NANOSECONDS = 1e9


def trace_what_ifs(
    traces: Iterable[RankTrace], without: Sequence[str] = (), *, faster: float = FASTER, steps: int | None = None
) -> tuple[TraceWhatIf, ...]:
    """Return the replays without these causes, or without each that applies; what saves most is first.

    `steps` are those of the whole run. Each trace may be freed once the next one is asked for.
    Raises: InvalidInputError for a cause that is none, or has nothing to act on.
    """
    of = Several.of(traces)
    if not without:
        replays = _each(of)
    elif is_table(of.traces):
        replays = tuple(dict.fromkeys(_of_table(_each(of), name) for name in without))
    else:
        replays = what_if_each(of.graph, [_cause(of, name, faster) for name in without])
    return tuple(_answer(one, steps) for one in sorted(replays, key=lambda one: one.replayed_ns))


def report_and_what_ifs(
    traces: Iterable[RankTrace], *, top: int = TRACED_NAMES
) -> tuple[TraceReport, tuple[TraceWhatIf, ...]]:
    """Return the report of traces and the replays without each cause that applies, from one graph.

    Raises: as `trace_report`.
    """
    read = RanksRead.of(traces)
    report = report_on(read, top=top)
    return report, tuple(_answer(one, None) for one in _each(read.several))


def _each(of: Several) -> tuple[WhatIf, ...]:
    return what_ifs_of(of.traces, of.stages or None, lambda: of.graph)


def _of_table(replays: Sequence[WhatIf], name: str) -> WhatIf:
    """Return the replay of a table of steps without a cause: without the rank or stage that saves most."""
    rank = RANK.fullmatch(name)
    begin = f"rank {rank[1]} " if rank else TABLE_CAUSES.get(name, "")
    chosen = [one for one in replays if begin and one.cause.startswith(begin)]
    if not chosen:
        raise InvalidInputError(f"--without {name[:80]!r}: of this table of steps expected {TABLE_EXPECTED}")
    return min(chosen, key=lambda one: one.replayed_ns)


def _cause(of: Several, name: str, faster: float) -> Cause:
    stages = of.stages
    if name == "communication":
        return communication_free
    if name == "sequences":
        return sequences_equal(stages or None)
    if name == "stages" and stages:
        return stage_balanced(stages)
    if name == "stages":
        raise InvalidInputError("--without stages: the traces name no pipeline; expected communicators between stages")
    if name == "slow-rank":
        return rank_as_peers(_latest(of))
    if match := RANK.fullmatch(name):
        return rank_as_peers(int(match[1]))
    if name.startswith(KERNELS) and name != KERNELS:
        return kernels_faster(name.removeprefix(KERNELS), faster)
    raise InvalidInputError(f"--without {name[:80]!r}: expected {', '.join(CAUSES)}")


def _latest(of: Several) -> int:
    late = arrivals(of.traces, of.collectives, of.clocks).slowest
    if late is None:
        raise InvalidInputError("--without slow-rank: no rank waits for another; expected collectives of two ranks")
    return late


def _answer(one: WhatIf, steps: int | None) -> TraceWhatIf:
    saved = None if steps is None else one.saved_ns(steps) / NANOSECONDS
    return TraceWhatIf(
        one.cause, one.measured_ns, one.replayed_ns, one.slowdown, one.saved_ns_per_step, saved, one.notes
    )
