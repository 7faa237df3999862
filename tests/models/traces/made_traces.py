"""Small traces written down event by event, and those that others recorded."""

from functools import lru_cache
from pathlib import Path

from crosswind.data.traces.columns import EventColumns
from crosswind.data.traces.trace import Group, Kind, Place, RankTrace
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.traces.kineto import KinetoReader

KINETO = Path(__file__).parents[4] / "shared/data/traces/kineto"
DLRM8 = [f"dlrm8/rank{rank}.pt.trace.json.gz" for rank in range(8)]
REFERENCES = {  # files whose times are whole microseconds, which HTA does not round, by the name of its answers
    "dlrm8": DLRM8,
    "a100_8rank_r3_control": ["a100_rank3of8.json.gz"],
    "v100_2rank_r1": ["v100_rank1of2.json.gz"],
    "hta_sampled2": [f"sampled2/sampled_rank-{rank}.json.gz" for rank in range(2)],
}
PLACES = (Place("stream 7", 0, 7), Place("stream 22", 0, 22), Place("thread 1"), Place("thread 2"))
STREAM, OTHER_STREAM, THREAD, OTHER_THREAD = range(4)
Row = tuple[Kind, str, int, int, int]  # kind, name, place, begin, duration, ns


def read(*names: str) -> list[RankTrace]:
    """Return the traces of these files, each of one rank."""
    return [_read(KINETO / name) for name in names]


@lru_cache(maxsize=32)
def _read(path: Path) -> RankTrace:
    [trace] = KinetoReader().read(path, Report(str(path), "kineto"))
    return trace


def made(rows: list[Row], rank: int | None = None, groups: tuple[Group, ...] = (), **columns: list[float]) -> RankTrace:
    """Return a trace of these events; further columns have a value for each."""
    names = list(dict.fromkeys(row[1] for row in rows))
    kind, name, place, begin, duration = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    collected = EventColumns()
    codes = [names.index(one) for one in name]
    own = {"begin_ns": begin, "duration_ns": duration, "kind": kind, "name": codes, "place": place}
    collected.add(len(rows), own | columns)
    return RankTrace(collected.events(), tuple(names), PLACES, groups, rank=rank)
