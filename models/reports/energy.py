"""Energy of the newest runs, measured and estimated, by workload, and the GPUs that runs held idle."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.devices.sheets import device_named
from crosswind.data.lake.steps_summary import time_of
from crosswind.data.schema.answers.energy import MeterScope
from crosswind.data.schema.run import Run
from crosswind.data.schema.trial import Configuration
from crosswind.data.store.run_facts import facts_of_runs
from crosswind.data.store.store import Store
from crosswind.models.energy.measured import Measured, measured_energy
from crosswind.models.energy.metered import accelerator_of
from crosswind.models.energy.of_run import DATA_SHEET_RATIO
from crosswind.models.reports.period import Period, newest_run_ns, period_of

RUNS = 300  # the newest of the period
GPU, IDLE = "gpu", 0.01  # the set, and the utilisation below which a GPU is idle
_IDLE = """
select s.place, count(*) filter (where g.utilization_ratio < ?) / count(*) as idle, count(distinct g.device) as gpus
from spans s join gpu g on g.node = s.node and g.ts_ns >= s.begin_ns and g.ts_ns < s.end_ns
where g.utilization_ratio is not null group by s.place
"""


@dataclass(frozen=True)
class RunEnergy:
    """One ended run: its joules by meters, of `scope`, or by the data sheet of its accelerators without one."""

    run_id: str
    workload: str
    system: str
    configuration: Configuration
    world_size: int | None
    seconds: float
    joules: float
    scope: MeterScope | None

    @property
    def is_measured(self) -> bool:
        """Return whether a meter said so."""
        return self.scope is not None


@dataclass(frozen=True)
class WorkloadEnergy:
    """Runs and joules of one workload: measured, estimated, and the number of runs of which neither is known."""

    workload: str
    measured_runs: int
    measured_joules: float
    estimated_runs: int
    estimated_joules: float
    unknown_runs: int


@dataclass(frozen=True)
class IdleRun:
    """A run that held GPUs: how many, and the share of their samples in which they did nothing."""

    run_id: str
    workload: str
    gpus: int
    idle_ratio: float
    idle_gpu_seconds: float


@dataclass(frozen=True)
class FleetEnergy:
    """Energy of the `looked_at` newest ended runs of a period; idle runs by the GPU time that they held for nothing."""

    period: Period
    looked_at: int
    workloads: tuple[WorkloadEnergy, ...]
    runs: tuple[RunEnergy, ...]
    idle: tuple[IdleRun, ...]


def fleet_energy(store: Store, system: str | None, workload: str | None, days: int | None) -> FleetEnergy:
    """Return the energy of a system's and a workload's runs, or of all. Raises: MalformedError."""
    period = period_of(days, newest_run_ns(store))
    wanted = RunFilter(system=system, workload=workload, since_ns=period.from_ns, until_ns=period.to_ns)
    with store.catalog.read() as session:
        newest = session.runs.find(wanted, limit=RUNS)
    runs = [run for run in newest if run.seconds and run.seconds > 0]
    runs = [replace(run, facts=facts) for run, facts in zip(runs, facts_of_runs(store, runs), strict=True)]
    measured = measured_energy(store, runs)
    energies = [energy for run in runs if (energy := _energy(run, measured.get(run.run_id))) is not None]
    return FleetEnergy(period, len(runs), _by_workload(runs, energies), tuple(energies), _idle(store, runs))


def _energy(run: Run, measured: Measured | None) -> RunEnergy | None:
    seconds = run.seconds or 0.0
    facts = (run.run_id, run.workload, run.system, run.configuration, run.world_size, seconds)
    if measured is not None:
        return RunEnergy(*facts, measured.energy.joules, measured.scope)
    device = device_named(accelerator_of(run.facts, run.configuration))
    if device is None or not run.world_size or not device.power_watts > 0:
        return None
    return RunEnergy(*facts, DATA_SHEET_RATIO * device.power_watts * run.world_size * seconds, None)


def _by_workload(runs: Iterable[Run], energies: Iterable[RunEnergy]) -> tuple[WorkloadEnergy, ...]:
    counts: dict[str, int] = defaultdict(int)
    for run in runs:
        counts[run.workload] += 1
    by_name: dict[str, list[RunEnergy]] = {name: [] for name in counts}
    for energy in energies:
        by_name[energy.workload].append(energy)
    rows = [_workload(name, own, counts[name]) for name, own in by_name.items()]
    return tuple(sorted(rows, key=lambda row: (-row.measured_joules - row.estimated_joules, row.workload)))


def _workload(name: str, own: Sequence[RunEnergy], runs: int) -> WorkloadEnergy:
    measured = [energy.joules for energy in own if energy.is_measured]
    estimated = [energy.joules for energy in own if not energy.is_measured]
    return WorkloadEnergy(
        name, len(measured), sum(measured), len(estimated), sum(estimated), runs - len(measured) - len(estimated)
    )


def _idle(store: Store, runs: Sequence[Run]) -> tuple[IdleRun, ...]:
    """Return the runs in whose time GPUs of their nodes were sampled, those that held the most for nothing first."""
    if GPU not in store.lake.sets() or not runs:
        return ()
    spans = [(place, node, run.started_ns, run.ended_ns) for place, run in enumerate(runs) for node in set(run.nodes)]
    with store.lake.connect({GPU}, within=time_of(runs)) as connection:
        connection.register("spans", pd.DataFrame(spans, columns=["place", "node", "begin_ns", "end_ns"]))
        rows = connection.execute(_IDLE, [IDLE]).fetchall()
    idle = [_idle_run(runs[place], int(gpus), float(ratio)) for place, ratio, gpus in rows]
    return tuple(sorted(idle, key=lambda one: (-one.idle_gpu_seconds, one.run_id)))


def _idle_run(run: Run, gpus: int, ratio: float) -> IdleRun:
    return IdleRun(run.run_id, run.workload, gpus, ratio, ratio * gpus * (run.seconds or 0.0))


@dataclass(frozen=True)
class EnergyPoint:
    """A configuration on so many ranks: the medians of its runs, and whether no other is faster and uses less."""

    workload: str
    system: str
    configuration: Configuration
    world_size: int | None
    runs: int
    seconds: float
    joules: float
    on_front: bool


def configurations(energies: Sequence[RunEnergy]) -> tuple[EnergyPoint, ...]:
    """Return the configurations of a workload's runs that one kind of meter measured, the fastest first."""
    groups: dict[tuple[str, int | None, str], list[RunEnergy]] = defaultdict(list)
    for energy in energies:
        groups[energy.system, energy.world_size, str(sorted(energy.configuration.items()))].append(energy)
    points = sorted((_point(own) for own in groups.values()), key=lambda point: (point.seconds, point.joules))
    least, front = float("inf"), []
    for point in points:
        front.append(replace(point, on_front=point.joules < least))
        least = min(least, point.joules)
    return tuple(front)


def _point(own: Sequence[RunEnergy]) -> EnergyPoint:
    first = own[0]
    medians = pd.DataFrame({"seconds": [one.seconds for one in own], "joules": [one.joules for one in own]}).median()
    named = (first.workload, first.system, first.configuration, first.world_size, len(own))
    return EnergyPoint(*named, float(medians["seconds"]), float(medians["joules"]), on_front=False)


def comparable(runs: Sequence[RunEnergy], workload: str) -> tuple[MeterScope | None, tuple[RunEnergy, ...]]:
    """Return the runs of a workload that can be compared: those of its most frequent meter, else the estimates."""
    own = [run for run in runs if run.workload == workload]
    counts: Mapping[MeterScope, int] = {
        scope: sum(run.scope is scope for run in own) for scope in MeterScope if any(run.scope is scope for run in own)
    }
    scope = max(counts, key=lambda one: counts[one]) if counts else None
    return scope, tuple(run for run in own if run.scope is scope)
