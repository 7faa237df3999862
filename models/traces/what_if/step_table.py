"""A pipeline's operations replayed with one cause taken out, from a table of steps or from traces that are one.

The replay is that of stored runs, `models.stragglers.replay`: time between operations is left out on both sides.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from crosswind.data.traces.naming import operation_of
from crosswind.data.traces.trace import NONE, Events, Kind, RankTrace
from crosswind.models.stragglers.operations import meetings_of
from crosswind.models.stragglers.replay import OperationReplay
from crosswind.models.traces.pipeline import TRANSFER, stages_of
from crosswind.models.traces.ranks import ranks_of
from crosswind.models.traces.steps import turns
from crosswind.models.traces.what_if.what_if import WhatIf

NANOSECONDS = 1e9
RANKS = 16  # replayed one by one: those whose operations take longest
KEYS = ["step", "rank", "operation"]
OPERATIONS = (Kind.KERNEL, Kind.COLLECTIVE, Kind.OPERATOR, Kind.USEFUL, Kind.MESSAGE)
MEETINGS = (Kind.COLLECTIVE, Kind.MESSAGE)


def table_what_ifs(operations: pd.DataFrame) -> tuple[WhatIf, ...]:
    """Return the replays of a table with all ranks equal, first, then without each cause; what saves most is first.

    `operations` has the columns of `replay.COLUMNS`. Raises: InvalidInputError as `OperationReplay.of`.
    """
    replay = OperationReplay.of(operations)
    ranks, stages = replay.slowest_ranks()[:RANKS], np.unique(replay.rows["stage"].to_numpy()).tolist()
    causes = {f"rank {rank} unlike the others": replay.mended_seconds("rank", rank) for rank in ranks}
    if len(stages) > 1:
        causes |= {f"stage {stage} unlike the others": replay.mended_seconds("stage", stage) for stage in stages}
    causes["sequences of unequal lengths"] = replay.replayed_seconds(_equal_lengths(replay))
    steps = int(replay.rows["step"].nunique())
    whole, *others = (
        WhatIf(cause, replay.measured_seconds * NANOSECONDS * steps, seconds * NANOSECONDS * steps, steps)
        for cause, seconds in {"ranks that are unequal": replay.ideal_seconds, **causes}.items()
    )
    return whole, *sorted(others, key=lambda one: one.replayed_ns)


def operations_of(traces: Sequence[RankTrace], stages: Mapping[int, int] | None = None) -> pd.DataFrame:
    """Return the operations of traces with the columns of `replay.COLUMNS`, and `replica` and `chunk`.

    Operations meet as their names say in StragglerAnalysis' tables, else by communicator and sequence number. Stages
    are given, or read off communicators. Raises: InvalidInputError as `ranks_of`.
    """
    of = stages_of(traces) if stages is None else stages
    frames = [_frame(trace, rank, of.get(rank, 0)) for rank, trace in zip(ranks_of(traces), traces, strict=True)]
    rows = pd.concat(frames, ignore_index=True)
    by_name = meetings_of(rows)
    return rows.assign(meeting=by_name.where(by_name.notna(), rows["meeting"]))


def _frame(trace: RankTrace, rank: int, stage: int) -> pd.DataFrame:
    events: Events = trace.events.of(*OPERATIONS)
    steps = turns(trace)
    groups = np.array([group.name for group in trace.groups] or [""], object)[events.group]
    meets = np.isin(events.kind, MEETINGS) & (events.group != NONE) & (events.sequence != NONE)
    frame = pd.DataFrame(
        {
            "step": np.searchsorted(steps.begin_ns, events.begin_ns, side="right"),
            "rank": rank,
            "stage": stage,
            "replica": _replica(trace, rank),
            "chunk": 0,
            "operation": np.array(trace.names_of(events), object),
            "meeting": np.where(meets, groups + " " + events.sequence.astype(str).astype(object), None),
            "start": (events.begin_ns - trace.span[0]) / NANOSECONDS,
            "duration": events.duration_ns / NANOSECONDS,
        }
    )
    counted = frame.groupby(KEYS).cumcount()
    return frame.assign(number=np.where(events.sequence == NONE, counted, events.sequence))


def _replica(trace: RankTrace, rank: int) -> int:
    """Return the first rank of its pipeline: of the communicator in which it transfers; 0 if none is stated."""
    communication = trace.events.of(*MEETINGS)
    for code in np.unique(communication.group[communication.group != NONE]).tolist():
        ranks = trace.groups[code].ranks
        names = np.unique(communication.name[communication.group == code]).tolist()
        if rank in ranks and all(operation_of(trace.names[name]) == TRANSFER for name in names):
            return int(min(ranks))
    return 0


def _equal_lengths(replay: OperationReplay) -> np.ndarray:
    """Return durations in which computation takes the mean of its kind and stage, whatever its micro-batch, (n,)."""
    rows, own = replay.rows, pd.Series(replay.own)
    by = own.groupby([rows["operation"].astype(str), rows["stage"]])
    is_computation = rows["operation"].astype(str).str.contains("compute") & rows["meeting"].isna()
    return np.where(is_computation, by.transform("mean"), own)
