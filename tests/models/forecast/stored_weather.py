"""A store of runs under a known weather: one an hour, of two workloads in turn."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.schema.trial import Configuration
from crosswind.data.store.store import Store

SECOND_NS = 1_000_000_000
HOUR_NS = 3600 * SECOND_NS
BEGIN_NS = 1_767_225_600 * SECOND_NS  # 2026-01-01, midnight UTC
USUAL_NS: Mapping[str, int] = {"bert": 100_000_000, "nanogpt": 400_000_000}  # of a step
STEPS = 7  # of which the first three are warm-up
NOISE = 0.03
Factor = Callable[[float], float]  # of hours since the beginning


def usual(hours: float) -> float:
    """Always the same weather."""
    return 1.0


def store_weather(
    home: Path, hours: int, factor: Factor = usual, *, seed: int = 0, system: str = "lab", first: int = 0
) -> None:
    """Stores a run for each hour from `first` on, whose steps take `factor` times their usual time, and noise."""
    noise = np.random.default_rng(seed).normal(0, NOISE, first + hours)
    columns: dict[str, list[int | str | None]] = {column.name: [] for column in STEP.columns}
    with Store.open(home) as store:
        with store.catalog.write() as session:
            for hour in range(first, first + hours):
                run = run_of(hour, system)
                session.runs.merge(run)
                seconds = int(USUAL_NS[run.workload] * factor(hour) * np.exp(noise[hour]))
                add_steps(columns, run, seconds)
        store.lake.append(f"{system}-{first}", to_table(STEP, columns))


def run_of(hour: int, system: str, state: RunState = RunState.COMPLETED) -> Run:
    """The run of an hour; it takes ten minutes."""
    started = BEGIN_NS + hour * HOUR_NS
    configuration: Configuration = {"batch": 8}
    ended = started + 600 * SECOND_NS if state is RunState.COMPLETED else None
    workload = ("nanogpt", "bert")[hour % 2]
    return Run(f"{system}-{hour:05}", workload, system, state, 1, configuration, started_ns=started, ended_ns=ended)


def add_steps(columns: dict[str, list[int | str | None]], run: Run, step_ns: int) -> None:
    """Rows of the run's steps, all equally long."""
    for step in range(STEPS):
        values: dict[str, int | str | None] = {**dict.fromkeys(columns, 0), "run_id": run.run_id, "step": step}
        values |= {"ts_ns": (run.started_ns or 0) + step * step_ns, "duration_seconds": step_ns}
        values |= {"compute_seconds": step_ns}
        for name, value in values.items():
            columns[name].append(value)
