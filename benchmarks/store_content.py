"""Content of a large store beside runs and steps: metrics of the nodes, checks, a study and a trained model.

The nodes of the newest runs are sampled every second, from shortly before a run until after it: every set that the
agent has, with meters and links, and exporters' series up to 1500 metrics. They go through the lake's own way of
writing: as one part a set, as it were compacted, and one of the newest 20 minutes.
"""

import numpy as np
import pyarrow as pa

from benchmarks.many_runs import FIRST_NS, SECOND, run_id_of, run_of
from crosswind.data.lake.lake import arrow_schema, to_table
from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.checks import PREFLIGHT, QUANTITIES
from crosswind.data.schema.metric import NUMERIC, Column, Kind, MetricSet, with_node_keys
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run
from crosswind.data.schema.trial import Study, Trial, TrialRecord, TrialState
from crosswind.data.store.store import Store
from crosswind.ingest.agent.self_metrics import AGENT
from crosswind.ingest.agent.sweep import COLLECTOR
from crosswind.ingest.collectors import SOURCES, made
from crosswind.ingest.collectors.source import Host, Options
from crosswind.models.registry.registry import Registry
from crosswind.models.training.trainers import TRAINERS
from crosswind.models.tuner.space.space import Space

METRICS, SAMPLED_RUNS, NEWEST = 1500, 400, 50
AROUND, SWEEPS = 5, 14  # seconds before a run's start, and sweeps of a node from there
MEASURED = (Kind.COUNTER, Kind.GAUGE)
DEVICES = {  # where a node has more than one, or readers look for a name
    "cpu": ("cpu", *(f"cpu{number}" for number in range(8))),
    "memory": ("all", "numa0", "numa1"),
    "network": ("eth0", "eth1"),
    "protocol": ("tcp",),
    "process": ("1000", "1001"),
    "rapl": ("package-0", "package-1"),
    "pm_counters": ("node",),
    "disk": ("nvme0n1", "sda"),
    "infiniband": ("mlx5_0/1", "mlx5_1/1"),
    "gpu": tuple(f"GPU-{number}" for number in range(4)),
}
NOT_THERE = ("amd_gpu", "cxi", "omnipath", "ethtool", "gpu_process", "occupancy", "sensor")  # of other nodes
EXPORTERS = 4
WATTS = 200.0
CHECKS, CHECKED_NODES = 20, 50
TRIALS = 200
SPACE = {
    "batch": {"kind": "ordinal", "values": [8, 16, 32, 64]},
    "bucket_mb": {"kind": "float", "low": 0.5, "high": 64, "log": True},
    "workers": {"kind": "int", "low": 0, "high": 16},
    "fused": {"kind": "boolean"},
}


def add_content(store: Store, runs: int) -> None:
    """Store what pages show of nodes, checks, searches and models, next to so many runs."""
    random = np.random.default_rng(7)
    numbers = range(max(0, runs - SAMPLED_RUNS), runs)
    for name, part in (("older", numbers[:-NEWEST]), ("newest", numbers[-NEWEST:])):
        of_part = [run_of(number) for number in part]
        store.lake.append_all({f"{one.name}-{name}": _samples(one, of_part, random) for one in node_sets()})
    store.lake.append("checks", _checks(numbers[-1], random))
    _search(store, runs)
    _train(store)


def node_sets() -> list[MetricSet]:
    """Return the sets of a node, with METRICS metrics in all."""
    sets = {metric_set.name: metric_set for source in SOURCES for metric_set in [_set_of(source)]}
    own = [AGENT, COLLECTOR, *(sets[name] for name in sorted(sets) if name not in NOT_THERE)]
    lacking = METRICS - sum(len(_measured(metric_set)) for metric_set in own)
    exported = [_exported(f"exporter_{place}", lacking // EXPORTERS) for place in range(EXPORTERS)]
    return [with_node_keys(metric_set) for metric_set in (*own, *exported)]


def _set_of(source: object) -> MetricSet:
    return made(source, Host(), Options(source.name)).metric_set  # type: ignore[arg-type,attr-defined]


def _exported(name: str, columns: int) -> MetricSet:
    kinds = [Column(f"{name}_{number}_total", "events", Kind.COUNTER) for number in range(columns // 2)]
    kinds += [Column(f"{name}_{number}_ratio", "a share", dtype="float64") for number in range(columns - len(kinds))]
    return MetricSet(name, "series of an exporter", tuple(kinds))


def _measured(metric_set: MetricSet) -> list[Column]:
    return [column for column in metric_set.columns if column.kind in MEASURED and column.dtype in NUMERIC]


def _samples(metric_set: MetricSet, runs: list[Run], random: np.random.Generator) -> pa.Table:
    """Return the sweeps of the runs' nodes: counters that grow, and gauges that waver, each around its node's own."""
    devices = DEVICES.get(metric_set.name, (metric_set.name,))
    places = [(node, run.started_ns or 0) for run in runs for node in run.nodes]
    of_node = np.repeat(np.arange(len(places)), SWEEPS * len(devices))
    sweep = np.tile(np.repeat(np.arange(SWEEPS), len(devices)), len(places))
    ts_ns = np.array([began for _, began in places])[of_node] + (sweep - AROUND) * SECOND
    size, schema = len(ts_ns), arrow_schema(metric_set)
    arrays = {
        "ts_ns": pa.array(ts_ns),
        "mono_ns": pa.array(ts_ns - FIRST_NS),
        "node": pa.array([node for node, _ in places]).take(pa.array(of_node)),
        "device": pa.array(devices * (size // len(devices))),
        "boot_id": pa.array(["6f1d3c0a-boot"] * size),
    }
    elapsed = (ts_ns - FIRST_NS) / SECOND
    for place, column in enumerate(_measured(metric_set)):
        values = _values(column, place, elapsed + 1e-3 * random.random(size))
        arrays[column.name] = pa.array(values.astype("int64") if "int" in column.dtype else values).cast(
            schema.field(column.name).type
        )
    columns = [arrays.get(field.name, pa.nulls(size, field.type)) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _values(column: Column, place: int, seconds: Floats) -> Floats:
    """Return raw values at these times: events some a second, joules at so many watts, other things about as ever."""
    if column.unit == "joules" and column.kind is Kind.COUNTER:
        return seconds * WATTS / column.scale
    if column.kind is Kind.COUNTER:
        return seconds * (100.0 if "error" not in column.name and "drop" not in column.name else 0.01)
    around = WATTS if "watts" in column.name else 0.5 if column.dtype == "float64" else 50.0 + place
    return np.asarray(around / column.scale * (1 + 0.1 * np.sin(seconds + place)))


def _checks(last: int, random: np.random.Generator) -> pa.Table:
    """Return the measures of some checks of all nodes, an hour apart."""
    system, newest_ns = run_of(last).system, run_of(last).started_ns or 0
    measures = [name for name, quantity in QUANTITIES.items() if not quantity.of_pair]
    rows = [
        (newest_ns - check * 3600 * SECOND, f"check-{check:03}", f"n{node:03}", "cpu", measure)
        for check in range(CHECKS)
        for node in range(CHECKED_NODES)
        for measure in measures
    ]
    keys = dict(
        zip(("ts_ns", "check_id", "node", "device", "measure"), map(list, zip(*rows, strict=True)), strict=True)
    )
    values = (100.0 * random.lognormal(0, 0.02, len(rows))).tolist()
    facts = {"method": ["numpy"] * len(rows), "hardware": ["cpu"] * len(rows), "system": [system] * len(rows)}
    return to_table(PREFLIGHT, {**keys, "value": values, **facts})


def _search(store: Store, runs: int) -> None:
    """Store a study whose trials are done, each in one of the newest runs."""
    space, newest = Space.from_json(SPACE), run_of(runs - 1)
    study = Study("bench", "bench", SPACE, "step_p50_seconds", "s", 0, newest.started_ns or 0, workload=newest.workload)
    with store.catalog.write() as session:
        session.studies.add(study)
        for place, configuration in enumerate(space.random(TRIALS, seed=1)):
            value = 1 + float(space.coordinates([configuration]).sum())
            done = Trial(configuration, TrialState.DONE, value, f"bench-{place:05}")
            session.leases.add(TrialRecord(done, "bench", owner="bench", run_id=run_id_of(max(0, runs - 1 - place))))


def _train(store: Store) -> None:
    name = str(Outcome.STEP)
    trained = TRAINERS[name].train(store)
    registry = Registry(store)
    record = registry.register(name, trained.model, trained.evidence)
    registry.promote(name, record.version, forced_because="runs that were made up")
