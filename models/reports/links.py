"""Losses of network links by node and device, against their peers of the fleet."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from crosswind.data.lake.delta import differences
from crosswind.data.lake.lake import Lake
from crosswind.data.lake.parts import Span
from crosswind.data.lake.series import in_order
from crosswind.data.store.store import Store
from crosswind.models.reports.period import Period, newest_sample_ns, period_of

BUCKETS = 168  # of the period: the first and the last sample of each are read, which keeps the growth whole
WORSE = 5.0  # times the median of its peers, from which on a link is named
EVENTS_MIN, SHARE_MIN, PEERS_MIN = 10, 1e-5, 3
LOOPBACK = "lo"
_EDGES = """
select (node, device, unnest([min(ts_ns), max(ts_ns)])) from {files}
where ts_ns between ? and ? group by node, device, ts_ns // ?
"""
_RATES = """
select node, device, arg_max({rate}, ts_ns) as rate from "{name}"
where ts_ns between ? and ? and {rate} > 0 and device <> 'lo' group by node, device
"""


@dataclass(frozen=True)
class Measure:
    """Events that a link should not have, as the sum of a set's counters, out of the sum of others, or a day."""

    name: str
    metric_set: str
    events: tuple[str, ...]
    of: tuple[str, ...] = ()


PACKETS = ("receive_packets_total", "transmit_packets_total")
MEASURES = (
    Measure("drops", "network", ("receive_drops_total", "transmit_drops_total"), PACKETS),
    Measure("errors", "network", ("receive_errors_total", "transmit_errors_total"), PACKETS),
    Measure("link changes", "network", ("carrier_changes_total",)),
    Measure("retransmits", "protocol", ("retransmitted_segments_total",), ("sent_segments_total",)),
    Measure("queue drops", "qdisc", ("drops_total",), ("sent_packets_total",)),
    Measure("port discards", "infiniband", ("transmit_discards_total", "receive_errors_total"), PACKETS),
    Measure("link downs", "infiniband", ("link_downed_total", "link_error_recoveries_total")),
)
RATES = {"network": "speed_bytes_per_second", "infiniband": "rate_bytes_per_second"}


@dataclass(frozen=True)
class LinkEvents:
    """A measure of one device: its events, their share or, without packets to count, events a day; and the peers'.

    `median` is of the other nodes of the fleet; None with fewer than three.
    """

    measure: str
    node: str
    device: str
    events: float
    share: float
    is_share: bool
    median: float | None
    is_worse: bool


@dataclass(frozen=True)
class SlowLink:
    """A link that is slower than the median of the links of that name on other nodes, bytes/s."""

    node: str
    device: str
    rate: float
    median: float


@dataclass(frozen=True)
class FleetLinks:
    """Links of a period, the worst against their peers first; `sets` are those with samples."""

    period: Period
    sets: tuple[str, ...]
    nodes: int
    events: tuple[LinkEvents, ...]
    slow: tuple[SlowLink, ...]


def fleet_links(store: Store, days: int | None) -> FleetLinks:
    """Return the links of so many days up to now, or of the newest seven with samples. Raises: MalformedError."""
    stored = tuple(name for name in dict.fromkeys(one.metric_set for one in MEASURES) if name in store.lake.sets())
    period = period_of(days, newest_sample_ns(store, stored))
    events = [row for name in stored for row in _events(store.lake, name, period)]
    slow = [row for name in stored if name in RATES for row in _slow(store.lake, name, period.span)]
    worst = sorted(events, key=lambda row: (not row.is_worse, -_times(row), -row.events, row.node, row.device))
    return FleetLinks(period, stored, len({row.node for row in events}), tuple(worst), tuple(slow))


def _times(row: LinkEvents) -> float:
    """Return how many times as bad as its peers it is."""
    return row.share / max(row.median or 0.0, SHARE_MIN)


def _events(lake: Lake, name: str, period: Period) -> Iterator[LinkEvents]:
    measures = [
        one for one in MEASURES if one.metric_set == name and {*one.events, *one.of} <= lake.columns(name).keys()
    ]
    if not measures:
        return
    grown = _growth(lake, name, sorted({column for one in measures for column in (*one.events, *one.of)}), period)
    for measure in measures:
        events = grown[list(measure.events)].sum(axis="columns")
        of = grown[list(measure.of)].sum(axis="columns") if measure.of else pd.Series(float(period.days), grown.index)
        counted = grown[["node", "device"]].assign(events=events, share=events / of.where(of > 0))
        yield from _compared(measure, counted.dropna(subset=["share"]))


def _growth(lake: Lake, name: str, columns: Sequence[str], period: Period) -> pd.DataFrame:
    """Return by node and device what its counters grew by: columns node, device and those."""
    span, width = period.span, max(1, (period.to_ns - period.from_ns) // BUCKETS)
    edges = _EDGES.format(files=lake.files(name, span))
    edge = f"device <> '{LOOPBACK}' and (node, device, ts_ns) in ({edges})"
    where = f"ts_ns between ? and ? and {edge}"
    series = in_order(lake.counters(name, columns, where=where, parameters=[*span, *span, width], within=span))
    grown = pd.DataFrame({column: differences(series, column)["growth"].astype("float64") for column in columns})
    named = {key: series.rows[key].to_pandas() for key in ("node", "device")}
    return grown.assign(**named).groupby(["node", "device"]).sum().reset_index()


def _compared(measure: Measure, counted: pd.DataFrame) -> Iterator[LinkEvents]:
    shares = counted["share"].to_numpy(np.float64)
    for place, (node, device, events, share) in enumerate(counted.itertuples(index=False)):
        others = shares[(counted["node"] != node).to_numpy()]
        median = float(np.median(others)) if len(others) >= PEERS_MIN else None
        least = SHARE_MIN if measure.of else 0.0
        is_many = events >= (EVENTS_MIN if measure.of else 1) and shares[place] > least
        is_worse = median is not None and is_many and share > WORSE * median
        yield LinkEvents(
            measure.name, node, device, float(events), float(share), bool(measure.of), median, bool(is_worse)
        )


def _slow(lake: Lake, name: str, span: Span) -> Iterable[SlowLink]:
    """Yield links below the median of those of their name."""
    rate = RATES[name]
    if rate not in lake.columns(name):
        return
    rates = lake.frame(_RATES.format(rate=rate, name=name), span, within=span)
    for device, own in rates.groupby("device"):
        median = float(own["rate"].median())
        for node, _, value in own.sort_values(["rate", "node"]).itertuples(index=False):
            if len(own) >= PEERS_MIN and value < median:
                yield SlowLink(str(node), str(device), float(value), median)
