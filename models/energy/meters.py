"""Readings of nodes' meters during runs: counters of energy, and sensors of power."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from crosswind.data.lake.delta import Flag, differences
from crosswind.data.lake.lake import Lake
from crosswind.data.lake.series import in_order
from crosswind.data.schema.run import Run
from crosswind.models.conditions.places import WITHIN, MemoryDatabase, rows_within

ENERGY, POWER = "energy_joules_total", "power_watts"
MARGIN_NS = 180 * 10**9  # before and after a run, for samples that reach over its edges
GAP_NS = 180 * 10**9  # between two readings of power; where they are further apart, power is unknown
EDGE_SHARE = 0.1  # of the run; a longer pair of samples that reaches beyond the run is left out, a shorter one divided
NANOSECONDS = 1e9
PLACE_TYPES = {"place": "int64", "at_node": "object", "begin_ns": "int64", "end_ns": "int64"}
SAMPLES = ["node", "device", "begin_ns", "end_ns", "joules"]


@dataclass(frozen=True)
class Counter:
    """A metric set that counts energy, and its devices that contain none of the others."""

    metric_set: str
    only: str = "true"  # SQL
    but: tuple[str, str] | None = None  # a column that not every store has, and SQL where it is there


WHOLE_NODE = Counter("pm_counters", "device = 'node'")
# A package holds its cores and uncore, but not its memory; psys would hold packages again.
PROCESSORS = Counter("rapl", r"regexp_matches(device, '^package-[^/]*(/dram.*)?$')")
ACCELERATORS = (Counter("gpu", but=("parent", "parent is null")), Counter("amd_gpu"))  # MIG's parts have a parent
# Sensors of a whole node, the surest first: DCMI, meters of MLPerf, Redfish's chassis totals, then what boards call it.
SENSORS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"dcmi",
        r"power AC",
        r"power|ptd",
        r"power DC",
        r"1|self|chassis|system\.embedded\.1",
        r"[^/]*/(server|system|chassis) ?power ?control",
        r"pwr consumption|power meter|total[_ ]power|sys(tem)?[_ ]power",
    )
)

# Joules of the covered time by place and device, then by place. Unknown growth covers nothing, but its device counts;
# a device whose counter never moves is no meter.
_COVERED = """
with parts as (
    select place, device, joules / (s.end_ns - s.begin_ns) as rate, p.end_ns - p.begin_ns as length,
        case when joules is null or s.end_ns <= s.begin_ns then 0
            when s.begin_ns >= p.begin_ns and s.end_ns <= p.end_ns then s.end_ns - s.begin_ns
            when s.end_ns - s.begin_ns <= {edge} * (p.end_ns - p.begin_ns)
            then least(s.end_ns, p.end_ns) - greatest(s.begin_ns, p.begin_ns) else 0 end as covered
    from places p join samples s on s.node = p.at_node and s.end_ns > p.begin_ns and s.begin_ns < p.end_ns
), devices as (
    select place, device, any_value(length) as length,
        sum(case when covered > 0 then rate * covered else 0 end) as joules, sum(covered) as covered
    from parts group by all
)
select place, sum(case when covered > 0 then joules / covered * length else 0 end)::double as joules,
    min(case when joules > 0 then covered / length else 0 end)::double as coverage
from devices group by place
"""


def places_of_runs(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run and node: `place` its number, `run` the run's number, its time span, and that of its samples."""
    rows = [
        (number, node, run.started_ns, run.ended_ns)
        for number, run in enumerate(runs)
        for node in dict.fromkeys(run.nodes)
    ]
    table = pd.DataFrame(rows, columns=["run", "at_node", "begin_ns", "end_ns"])
    table = table.assign(place=range(len(table))).astype(PLACE_TYPES | {"run": "int64"})
    return table.assign(from_ns=table["begin_ns"] - MARGIN_NS, until_ns=table["end_ns"] + MARGIN_NS)


def counted(lake: Lake, places: pd.DataFrame, counter: Counter) -> pd.DataFrame:
    """Return by place the `joules` of its devices and their least `coverage`, 0 to 1; no row for a place without any.

    Mean power in time that is not covered is taken to be that of covered time. Raises: MalformedError.
    """
    if counter.metric_set not in lake.sets() or ENERGY not in (columns := lake.columns(counter.metric_set)):
        return _nothing()
    only = counter.only
    if counter.but is not None and counter.but[0] in columns:
        only = f"({only}) and ({counter.but[1]})"
    rows = lake.counters(counter.metric_set, [ENERGY], where=f"{WITHIN} and ({only})", **rows_within(places))
    grown = differences(in_order(rows), ENERGY)
    ends = rows["ts_ns"].to_numpy()
    # After a reset, the growth before it is unknown.
    is_known = grown["growth"].notna().to_numpy() & ((grown["flag"].to_numpy() & Flag.RESET) == 0)
    spans = np.where(is_known, grown["seconds"].to_numpy(np.float64, na_value=0.0) * NANOSECONDS, 0.0)
    joules = np.where(is_known, grown["growth"].to_numpy(np.float64, na_value=np.nan), np.nan)
    samples = rows.select(["node", "device"]).to_pandas()
    samples = samples.assign(begin_ns=ends - np.rint(spans).astype(np.int64), end_ns=ends, joules=joules)
    return _covered(samples, places)


def sensed(lake: Lake, places: pd.DataFrame) -> pd.DataFrame:
    """Return the same as `counted` from readings of whole nodes' power, interpolated linearly between them."""
    if "sensor" not in lake.sets() or POWER not in lake.columns("sensor"):
        return _nothing()
    where = f"{WITHIN} and {POWER} is not null"
    rows = lake.counters("sensor", [POWER], where=where, **rows_within(places))
    readings = rows.select(["node", "device", "ts_ns", POWER]).to_pandas()
    kept = readings[readings["device"].eq(readings["node"].map(_whole_nodes(readings)))]
    kept = kept[kept[POWER] >= 0].drop_duplicates(["node", "ts_ns"]).sort_values(["node", "ts_ns"])
    before = kept.groupby("node")[["ts_ns", POWER]].shift()
    begins = before["ts_ns"].astype("Int64").fillna(kept["ts_ns"]).astype("int64")
    spans = kept["ts_ns"] - begins
    joules = (kept[POWER] + before[POWER]) / 2 * spans / NANOSECONDS
    is_known = (spans > 0) & (spans <= GAP_NS)
    begins = begins.where(is_known, kept["ts_ns"])
    return _covered(kept.assign(begin_ns=begins, end_ns=kept["ts_ns"], joules=joules.where(is_known)), places)


def _whole_nodes(readings: pd.DataFrame) -> Mapping[str, str]:
    """The sensor of each node's whole power; none where two match, as of two chassis."""
    sensors = {}
    for node, devices in readings.groupby("node")["device"].unique().items():
        matches = ([device for device in devices if pattern.fullmatch(device)] for pattern in SENSORS)
        first: list[str] = next(filter(None, matches), [])
        if len(first) == 1:
            sensors[str(node)] = first[0]
    return sensors


def _covered(samples: pd.DataFrame, places: pd.DataFrame) -> pd.DataFrame:
    """Joules and coverage of places from samples, which are spans; an unknown one is a point just before its end.

    A device that was seen in a run with unknown readings thus covers nothing of it.
    """
    is_point = samples["begin_ns"] >= samples["end_ns"]
    begins = samples["begin_ns"].where(~is_point, samples["end_ns"] - 1)
    spans = samples.assign(begin_ns=begins, joules=samples["joules"].where(~is_point))[SAMPLES]
    with MemoryDatabase.opened() as database:
        table = database.answer(_COVERED.format(edge=EDGE_SHARE), spans, places)
    return table.set_index("place")


def _nothing() -> pd.DataFrame:
    return pd.DataFrame({"joules": [], "coverage": []}, index=pd.Index([], name="place", dtype="int64")).astype(
        "float64"
    )
