"""Partitions of the runs by time, so that a file of the lake is read for few of them."""

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.lake.parts import DAY_NS
from crosswind.data.schema.run import RunState
from crosswind.data.store.store import Store

RUNS_AT_ONCE = 10_000  # of a partition, or up to twice as many: some 100 MB while it is read
END_NS = 2**63 - 1

Partition = tuple[int, int]  # from and until, ns UTC


def partitions_of(store: Store, runs_at_once: int = RUNS_AT_ONCE) -> list[Partition]:
    """Return the partitions of the completed runs, oldest first: whole days, or parts of days with many runs."""
    with store.catalog.read() as session:
        begun = RunFilter(state=RunState.COMPLETED, since_ns=1)  # one that has not is listed as of 0
        starts = session.runs.every(runs_at_once, begun)
    cuts = [start - start % DAY_NS for start in starts[:1]]
    for start in starts[1:]:
        midnight = start - start % DAY_NS
        cut = midnight if midnight > cuts[-1] else start
        if cut > cuts[-1]:
            cuts.append(cut)
    return list(zip(cuts, [*cuts[1:], END_NS], strict=False))
