"""Traces of a run of two ranks, of which one comes late to its only collective, and their rows in a store."""

from dataclasses import replace
from hashlib import sha256

from crosswind.data.store.store import Store
from crosswind.data.traces.columns import EventColumns
from crosswind.data.traces.rows import rows_of
from crosswind.data.traces.trace import NONE, Group, Kind, Place, RankTrace

LATE_NS = 40_000
PLACES = (Place("stream 7", 0, 7), Place("thread 1", NONE, 1))
NAMES = ("gemm", "ncclDevKernel_AllReduce_Sum_f32_RING", "aten::mm", "cudaLaunchKernel", "ProfilerStep#1")


def two_ranks(begin_ns: int = 0, *, mark: str = "") -> list[RankTrace]:
    """Return the traces; `mark` is in every text that a trace has."""
    return [_rank(rank, begin_ns, mark) for rank in range(2)]


def _rank(rank: int, begin_ns: int, mark: str) -> RankTrace:
    computes = 10_000 + rank * LATE_NS
    events = [  # kind, name, place, begin, duration, correlation
        (Kind.STEP, 4, 1, 0, 100_000, NONE),
        (Kind.OPERATOR, 2, 1, 1_000, 4_000, NONE),
        (Kind.CALL, 3, 1, 2_000, 1_000, 11),
        (Kind.KERNEL, 0, 0, 5_000, computes, 11),
        (Kind.COLLECTIVE, 1, 0, 5_000 + computes, 80_000 - computes, NONE),
    ]
    kind, name, place, begin, duration, correlation = zip(*events, strict=True)
    columns = EventColumns()
    columns.add(
        len(events),
        {
            "kind": kind,
            "name": name,
            "place": place,
            "begin_ns": [begin_ns + one for one in begin],
            "duration_ns": duration,
            "correlation": correlation,
            "group": [0 if one == Kind.COLLECTIVE else NONE for one in kind],
            "sequence": [3 if one == Kind.COLLECTIVE else NONE for one in kind],
        },
    )
    names = tuple(f"{one}{mark}" for one in NAMES)
    places = tuple(replace(one, label=f"{one.label}{mark}") for one in PLACES)
    facts = {"rank": rank, "world_size": 2, "node": f"n{mark}", "source": f"rank{rank}{mark}.json", "format": "kineto"}
    return RankTrace(columns.events(), names, places, (Group(f"0{mark}", (0, 1), 2),), **facts)  # type: ignore[arg-type]


def store_traces(store: Store, run_id: str, *, mark: str = "") -> None:
    """Store such traces of a stored run."""
    with store.catalog.read() as session:
        run = session.runs.get(run_id)
    safe = sha256(run_id.encode()).hexdigest()[:16]
    for rank, trace in enumerate(two_ranks(run.started_ns or 0, mark=mark)):
        for number, table in enumerate(rows_of(trace, run, rank)):
            store.lake.append(f"trace-{safe}-{rank}-{number}", table)
