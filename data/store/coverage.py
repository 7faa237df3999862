"""The share of an allocation's time that has samples."""

import time
from collections.abc import Sequence

from crosswind.data.schema.occupancy import Allocation
from crosswind.data.store.store import Store

SWEEPS = "collector"  # the set in which the agent notes every sweep
PATIENCE = 3  # a gap up to so many usual distances between sweeps is none: some come late
_COVERAGE = """
with sweeps as (
    select distinct a.place, a.begin_ns, a.end_ns, s.ts_ns
    from spans a join collector s on s.node = a.node and s.ts_ns >= a.begin_ns and s.ts_ns < a.end_ns
    where s.ts_ns >= ? and s.ts_ns < ?
), gaps as (
    select *, ts_ns - lag(ts_ns) over (partition by place order by ts_ns) as gap_ns from sweeps
), usual as (
    select *, quantile_disc(gap_ns, 0.9) over (partition by place) * ? as most_ns from gaps
)
select place, case when any_value(most_ns) is not null then least(1.0, (
    coalesce(sum(gap_ns) filter (where gap_ns <= most_ns), 0)
    + coalesce(min(ts_ns - begin_ns) filter (where ts_ns - begin_ns <= most_ns), 0)
    + coalesce(min(end_ns - ts_ns) filter (where end_ns - ts_ns <= most_ns), 0)
) / any_value(end_ns - begin_ns)) end
from usual group by place
"""


def coverages(store: Store, allocations: Sequence[Allocation], now_ns: int | None = None) -> list[float | None]:
    """For each allocation the share of its time, until now if it runs, in which its node was sampled, from 0 to 1.

    None where the start is unknown, or where too few sweeps were taken to tell how far apart they should be.
    """
    now = time.time_ns() if now_ns is None else now_ns
    spans = [
        _span(place, allocation, now)
        for place, allocation in enumerate(allocations)
        if allocation.started_ns is not None
    ]
    shares = _covered(store, spans) if spans and SWEEPS in store.lake.sets() else {}
    return [
        None if allocation.started_ns is None else shares.get(place, 0.0)
        for place, allocation in enumerate(allocations)
    ]


def _span(place: int, allocation: Allocation, now_ns: int) -> tuple[int, str, int, int]:
    end_ns = now_ns if allocation.ended_ns is None else allocation.ended_ns
    return place, allocation.sampled_as, allocation.started_ns or 0, end_ns


def _covered(store: Store, spans: Sequence[tuple[int, str, int, int]]) -> dict[int, float | None]:
    import pandas as pd  # noqa: PLC0415 - heavy

    limits = min(span[2] for span in spans), max(span[3] for span in spans)
    with store.lake.connect({SWEEPS}, within=limits) as connection:
        connection.register("spans", pd.DataFrame(spans, columns=["place", "node", "begin_ns", "end_ns"]))
        return dict(connection.execute(_COVERAGE, [*limits, PATIENCE]).fetchall())
