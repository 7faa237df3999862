"""Samples of a run's nodes while it ran, placed on the axis of its steps."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from crosswind.client.local import Local
from crosswind.dashboards.figures.run.strips import NodeStrips, Strip, Values
from crosswind.data.schema.answers.series import SeriesAnswer
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run
from crosswind.data.schema.series_question import SeriesQuestion, Statistic

MOST_NODES = 32  # whose samples are read: more would not change their median and band by much
POINTS = 120
PACKAGES = tuple(f"package-{number}" for number in range(8))


@dataclass(frozen=True)
class Source:
    """Metrics that together make a strip: their values are added."""

    metrics: tuple[str, ...]
    devices: tuple[str, ...] = ()
    statistics: tuple[Statistic, ...] = ()  # none: the rate of counters, the mean of gauges


@dataclass(frozen=True)
class Sampled:
    """An answer that holds metrics of a source, among others."""

    answer: SeriesAnswer
    metrics: tuple[str, ...]

    def by_node(self) -> dict[str, Floats]:
        """Return the sum of the metrics by node, NaN where one is missing."""
        values: dict[str, Floats] = {}
        for series in self.answer.series:
            node, line = series.labels.get("node", ""), np.array(series.values, np.float64)
            if series.metric in self.metrics:
                values[node] = values[node] + line if node in values else line
        return values


@dataclass(frozen=True)
class Wanted:
    """A strip, and its sources: the first that is sampled is taken."""

    name: str
    unit: str
    sources: tuple[Source, ...]


Asked = tuple[tuple[str, ...], tuple[Statistic, ...]]  # devices and statistics of a question
CORES = ("cpu.user_seconds_total", "cpu.system_seconds_total")
WANTED = (
    Wanted("CPU", "cores busy", (Source(CORES, ("all",)), Source(CORES))),
    Wanted("memory available", "bytes", (Source(("memory.available_bytes",)),)),
    Wanted("network", "bytes/s", (Source(("network.receive_bytes_total", "network.transmit_bytes_total")),)),
    Wanted("busiest disk", "ratio", (Source(("disk.busy_seconds_total",), statistics=(Statistic.MAX,)),)),
    Wanted(
        "GPU busy",
        "ratio",
        (Source(("gpu.utilization_ratio",)), Source(("amd_gpu.utilization_ratio",))),
    ),
    Wanted(
        "power",
        "W",
        (Source(("pm_counters.power_watts",), ("node",)), Source(("rapl.energy_joules_total",), PACKAGES)),
    ),
    Wanted("power of a GPU", "W", (Source(("gpu.power_watts",)), Source(("amd_gpu.power_watts",)))),
    Wanted(
        "links",
        "bytes/s",
        tuple(
            Source((f"{name}.receive_bytes_total", f"{name}.transmit_bytes_total"))
            for name in ("infiniband", "cxi", "omnipath")
        ),
    ),
)


@dataclass(frozen=True)
class Axis:
    """Places of times: the steps that ran then, or, without steps, seconds since the run's start."""

    name: str
    begin_ns: int
    end_ns: int
    times_ns: Floats
    places: Floats

    def at(self, times_ns: Floats) -> Floats:
        """Return the places of times; NaN before the first and after the last."""
        return np.interp(times_ns, self.times_ns, self.places, left=np.nan, right=np.nan)


def axis_of(run: Run, steps: pd.DataFrame) -> Axis | None:
    """Return the axis of a run's compared steps (columns step, began_ns, seconds); None without any time."""
    if not steps.empty:
        began, numbers = steps["began_ns"].to_numpy(np.float64), steps["step"].to_numpy(np.float64)
        end = began[-1] + np.nan_to_num(float(steps["seconds"].iloc[-1])) * 1e9
        times = np.maximum.accumulate(np.append(began, end))
        return Axis("step", int(times[0]), int(times[-1]) + 1, times, np.append(numbers, numbers[-1] + 1))
    if run.started_ns is None or run.ended_ns is None or run.ended_ns <= run.started_ns:
        return None
    span = (run.started_ns, run.ended_ns)
    return Axis("second since its start", *span, np.array(span, np.float64), np.array([0.0, (span[1] - span[0]) / 1e9]))


def node_strips(client: Local, run: Run, axis: Axis | None, node: str | None) -> NodeStrips | None:
    """Return the strips of a run's nodes, that of `node` in blue; None where nothing of them was sampled."""
    if axis is None or not run.nodes:
        return None
    nodes = _chosen(run.nodes, node)
    own = run.nodes[0] if node is None and len(run.nodes) == 1 else node
    names = _names(client, own)
    sampled = _sampled(client, _question(run, nodes, axis))
    strips = [_placed(one, sampled[one.name], axis, names) if one.name in sampled else None for one in WANTED]
    missing = tuple(one.name for one, strip in zip(WANTED, strips, strict=True) if strip is None)
    there = tuple(strip for strip in strips if strip is not None)
    others = len(nodes) - (own is not None)
    span = (float(axis.places[0]), float(axis.places[-1]))
    return NodeStrips(own, others, axis.name, span, there, missing) if there else None


def _chosen(nodes: Sequence[str], node: str | None) -> tuple[str, ...]:
    """Return the nodes to read: the one in blue, and of the others as many as fit, evenly."""
    others = [name for name in nodes if name != node]
    every = -(-len(others) // MOST_NODES)
    return (*([] if node is None else [node]), *others[:: max(1, every)])


def _names(client: Local, node: str | None) -> set[str]:
    """Return the names by which a node is sampled."""
    if node is None:
        return set()
    with client.store.catalog.read() as session:
        return {node, *session.places.sampled_names({node}).get(node, ())}


def _sampled(client: Local, question: SeriesQuestion) -> dict[str, Sampled]:
    """Return by strip the first of its sources that has values; the next is read only where that has none."""
    sets = client.store.lake.sets()
    wanted = {
        one.name: [stored for source in one.sources if (stored := _stored(client, sets, source))] for one in WANTED
    }
    sampled: dict[str, Sampled] = {}
    while any(wanted.values()):
        next_ones = {name: sources.pop(0) for name, sources in wanted.items() if sources}
        answers = _answers(client, question, next_ones.values())
        for name, source in next_ones.items():
            one = Sampled(answers[source.devices, source.statistics], source.metrics)
            if any(np.isfinite(line).any() for line in one.by_node().values()):
                sampled[name] = one
                wanted[name] = []
    return sampled


def _answers(client: Local, question: SeriesQuestion, sources: Iterable[Source]) -> dict[Asked, SeriesAnswer]:
    """Return the answers to sources; those of the same devices and statistics are read together."""
    together: dict[Asked, tuple[str, ...]] = defaultdict(tuple)
    for source in sources:
        together[source.devices, source.statistics] += source.metrics
    return {
        (devices, of): client.fleet.series(replace(question, metrics=metrics, devices=devices, statistics=of))
        for (devices, of), metrics in together.items()
    }


def _stored(client: Local, sets: Collection[str], source: Source) -> Source | None:
    """Return the source with those of its metrics that are stored; None without any."""
    metrics = tuple(one for one in source.metrics if _is_stored(client, sets, one))
    return replace(source, metrics=metrics) if metrics else None


def _is_stored(client: Local, sets: Collection[str], metric: str) -> bool:
    name, _, column = metric.partition(".")
    return name in sets and column in client.store.lake.columns(name)


def _question(run: Run, nodes: tuple[str, ...], axis: Axis) -> SeriesQuestion:
    """Return what is asked of every metric; `metrics` are to be replaced."""
    return SeriesQuestion(
        CORES,
        nodes=nodes if len(run.nodes) > len(nodes) else (),  # of few nodes all, by whatever name they are sampled
        runs=(run.run_id,),
        from_ns=axis.begin_ns,
        to_ns=axis.end_ns,
        by=("node",),
        points=POINTS,
        limit=1000,
    )


def _placed(wanted: Wanted, sampled: Sampled, axis: Axis, own: set[str]) -> Strip:
    answer, values = sampled.answer, sampled.by_node()
    numbers = np.arange(len(next(iter(values.values()))), dtype=np.float64)
    middles = np.asarray(answer.from_ns + (numbers + 0.5) * answer.step_seconds * 1e9, np.float64)
    places = axis.at(middles)
    is_there = np.isfinite(places)
    blue = [one for node, one in values.items() if node in own]
    rest = [one for node, one in values.items() if node not in own]
    bands = _quantiles(rest) if rest else np.full((3, len(middles)), np.nan)
    mine = blue[0] if blue else np.full(len(middles), np.nan)
    lines = [_plain(line[is_there]) for line in (mine, *bands)]
    return Strip(wanted.name, wanted.unit, tuple(round(float(place), 1) for place in places[is_there]), *lines)


def _quantiles(rest: Sequence[Floats]) -> Floats:
    """Return the 10th, 50th and 90th percentile by point, of the nodes that have a value there; NaN without one."""
    ordered = np.sort(np.array(rest), axis=0)  # NaN last
    last = np.isfinite(ordered).sum(axis=0) - 1
    places = np.multiply.outer((0.1, 0.5, 0.9), np.maximum(last, 0))
    low = places.astype(np.int64)
    at, above = (np.take_along_axis(ordered, np.minimum(rows, last.clip(0)), axis=0) for rows in (low, low + 1))
    return np.asarray(at + (above - at) * (places - low), np.float64)


def _plain(line: Floats) -> Values:
    return tuple(None if np.isnan(value) else float(value) for value in line)
