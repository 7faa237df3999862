"""Stores whose nodes were metered, for tests."""

from collections.abc import Iterable, Sequence

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.metric import Scalar, with_node_keys
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store
from crosswind.ingest.collectors.nvml import GPU
from crosswind.ingest.collectors.pm_counters import PM_COUNTERS
from crosswind.ingest.collectors.rapl import RAPL
from crosswind.ingest.collectors.sensor_set import SENSOR

SECOND = 1_000_000_000
START_NS = 1_767_323_045 * SECOND
SETS = {metric_set.name: with_node_keys(metric_set) for metric_set in (PM_COUNTERS, RAPL, GPU, SENSOR)}
Reading = tuple[float, int | float | None]  # seconds after START_NS, value as stored


def a_run(run_id: str = "r", nodes: Sequence[str] = ("n1",), *, first: float = 0.0, seconds: float = 100.0) -> Run:
    """A run that began so many seconds after START_NS, and took so many."""
    began = START_NS + int(first * SECOND)
    return Run(
        run_id,
        "bert",
        "lab",
        RunState.COMPLETED,
        world_size=8 * len(nodes),
        nodes=tuple(nodes),
        started_ns=began,
        ended_ns=began + int(seconds * SECOND),
    )


def put_runs(store: Store, *runs: Run) -> None:
    """Into the catalog."""
    with store.catalog.write() as session:
        for run in runs:
            session.runs.merge(run)


def put_readings(
    store: Store, metric_set: str, device: str, readings: Iterable[Reading], *, node: str = "n1", **facts: Scalar
) -> None:
    """Store what a device of a node showed, in the set's own column of energy, or of power for `sensor`."""
    column = "power_watts" if metric_set == "sensor" else "energy_joules_total"
    times, values = zip(*readings, strict=True)
    columns = {
        "ts_ns": [START_NS + int(seconds * SECOND) for seconds in times],
        "node": [node] * len(times),
        "device": [device] * len(times),
        "boot_id": ["b"] * len(times),
        column: list(values),
        **{name: [value] * len(times) for name, value in facts.items()},
    }
    part = f"{metric_set}-{node}-{device}".replace("/", "-").replace(".", "-").replace(" ", "-")
    store.lake.append(part, to_table(SETS[metric_set], columns))


def steady(watts: float, *, scale: float = 1.0, begin: int = 1000, every: int = 10, last: int = 200) -> list[Reading]:
    """A counter that grows by so many watts, from 50 s before START_NS on, in units of `scale` joules."""
    return [(seconds, begin + round(watts * (seconds + 50) / scale)) for seconds in range(-50, last + 1, every)]
