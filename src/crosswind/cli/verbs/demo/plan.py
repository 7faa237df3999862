"""Plan of the demo: runs of one small workload, some with a known disturbance, in random order."""

import json
import random
import sys
from dataclasses import dataclass

from crosswind.data.schema.trial import Configuration
from crosswind.ingest.lab.faults import Fault

RANKS = 2
STEPS = 40
RUNS, RUNS_LEAST = 12, 4
CONFIGURATION: Configuration = {"batch": 16, "bucket_mb": 1.0, "bucket_view": False, "threads": 1}
TRIAL_STEPS = 20
TRIALS = 3
STRENGTHS = {"cpu_hog": (2.0, 1.0), "slow_input": (40.0, 25.0), "memory_traffic": (96.0, 64.0)}
TRUTH = {"cpu_hog": "cpu_contention", "slow_input": "slow_input", "memory_traffic": "memory_traffic"}


@dataclass(frozen=True)
class PlannedRun:
    """One run to record; `fault` None runs undisturbed."""

    fault: Fault | None

    @property
    def truth(self) -> str | None:
        """The cause that an explanation should name."""
        return TRUTH[self.fault.kind] if self.fault else None

    @property
    def injected(self) -> str:
        """The fault, as the run's tag names it."""
        return str(self.fault) if self.fault else "none"


def planned_runs(seed: int, count: int = RUNS) -> list[PlannedRun]:
    """So many runs, shuffled: half with a fault on a random rank, every kind before a second strength, half without."""
    dice = random.Random(seed)  # noqa: S311 - an experiment's order, no secret
    faults = [
        Fault(kind, dice.randrange(RANKS), strengths[number])
        for number in range(max(map(len, STRENGTHS.values())))
        for kind, strengths in STRENGTHS.items()
    ][: count // 2]
    runs = [*map(PlannedRun, faults), *[PlannedRun(None)] * (count - len(faults))]
    dice.shuffle(runs)
    return runs


def tunable(cores: int) -> dict[str, dict[str, object]]:
    """The space that is tuned; more threads only where every rank has cores for them."""
    threads = [count for count in (1, 2, 4) if count * RANKS <= max(cores, RANKS)]
    return {
        "batch": {"kind": "ordinal", "values": [8, 16, 32, 64]},
        "bucket_mb": {"kind": "float", "low": 0.25, "high": 16.0, "log": True},
        "bucket_view": {"kind": "boolean"},
        "threads": {"kind": "ordinal", "values": threads},
    }


def command(*, steps: int, configuration: Configuration, fault: Fault | None) -> tuple[str, ...]:
    """The command line of one run of the demo's workload."""
    words = [sys.executable, "-m", "crosswind.ingest.lab.warm", f"--ranks={RANKS}", f"--steps={steps}"]
    words += [f"--{name.replace('_', '-')}={json.dumps(value)}" for name, value in configuration.items()]
    return (*words, f"--fault={fault}") if fault else tuple(words)
