"""What the demo measures: runs of one small workload, some disturbed in a known way, in random order."""

import json
import random
from dataclasses import dataclass

from crosswind.data.trial import Configuration
from crosswind.ingest.lab.faults import Fault

RANKS = 2
STEPS = 50
UNDISTURBED = 8
CONFIGURATION: Configuration = {"batch": 16, "bucket_mb": 1.0, "bucket_view": False, "threads": 1}
TRIAL_STEPS = 20
TRIALS = 4
STRENGTHS = {"cpu_hog": (1.0, 2.0), "slow_input": (25.0, 40.0), "memory_traffic": (64.0, 96.0)}
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
        """What the run's tag says of it."""
        return str(self.fault) if self.fault else "none"


def planned_runs(seed: int) -> list[PlannedRun]:
    """Every fault at each of its strengths on a random rank, and the undisturbed runs, shuffled."""
    dice = random.Random(seed)  # noqa: S311 - an experiment's order, no secret
    faults = [
        Fault(kind, dice.randrange(RANKS), strength) for kind, strengths in STRENGTHS.items() for strength in strengths
    ]
    runs = [*map(PlannedRun, faults), *[PlannedRun(None)] * UNDISTURBED]
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


def command(torchrun: str, *, steps: int, configuration: Configuration, fault: Fault | None) -> tuple[str, ...]:
    """The command line of one run of the demo's workload."""
    words = [torchrun, "--standalone", f"--nproc-per-node={RANKS}", "-m", "crosswind.ingest.lab.train"]
    words += [f"--steps={steps}"]
    words += [f"--{name.replace('_', '-')}={json.dumps(value)}" for name, value in configuration.items()]
    return (*words, f"--fault={fault}") if fault else tuple(words)
