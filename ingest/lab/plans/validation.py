"""The plan for judging explanations: fresh runs, single faults weak and strong, and two faults at once.

No strength, pair or cohort was chosen by looking at explanations. Weak faults are meant to cost 5 to 10 % of a step of
a quiet machine, strong ones a third and more; the real cost is in the run. All are in one random order.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from crosswind.ingest.lab.plans.plan import (
    COHORTS,
    PASSING,
    STEPS,
    Cohort,
    Plan,
    PlannedFault,
    PlannedRun,
    numbered,
    planned,
)

VALIDATION_SEED = 2
HEALTHY = 12  # of each cohort


@dataclass(frozen=True)
class Pace:
    """A workload's usual step in ms, and link rates in Mbit/s that slow it a little and a lot."""

    step_ms: float
    weak_rate: float
    strong_rate: float


PACES: Mapping[str, Pace] = {
    "byte-transformer": Pace(40.0, 1300.0, 300.0),
    "image-classifier": Pace(22.0, 350.0, 40.0),
    "embedding-recommender": Pace(38.0, 1700.0, 600.0),
}
WEAK_SHARE, STRONG_SHARE = 0.08, 0.6  # of a step
CHECKPOINTS = 3  # of a run of 60 steps
MIDDLE = 0.4  # of a run


def validation(seed: int = VALIDATION_SEED) -> Plan:
    """Return three cohorts of two ranks, each healthy, under every fault twice, and under eight pairs of faults."""
    dice = random.Random(seed)  # noqa: S311 - an experiment's order, no secret
    cohorts = [cohort for cohort in COHORTS if cohort.world_size == 2 and cohort.threads == 1]
    of_workload = {cohort.workload: cohort for cohort in reversed(cohorts)}
    runs = [run for cohort in of_workload.values() for run in _of_cohort(cohort, dice)]
    dice.shuffle(runs)
    return Plan(f"validation-{seed}", numbered(runs))


def _of_cohort(cohort: Cohort, dice: random.Random) -> Iterator[PlannedRun]:
    yield from [planned(cohort)] * HEALTHY
    pace = PACES[cohort.workload]
    strong, weak = _strong(pace), _weak(pace)
    for kind, strength in strong.items():
        yield planned(cohort, _fault(kind, strength, dice))
    for kind, (strength, share) in weak.items():
        yield planned(cohort, _fault(kind, strength, dice, share))
    for pair in PAIRS:
        yield planned(cohort, *(_fault(kind, strong[kind], dice) for kind in pair))


PAIRS = (
    ("slow_input", "rate_cap"),
    ("slow_rank", "late_checkpoint"),
    ("slow_input", "slow_rank"),
    ("rate_cap", "cpu_hog"),
    ("slow_rank", "rate_cap"),
    ("slow_input", "late_checkpoint"),
    ("pause", "rate_cap"),
    ("slow_input", "cpu_quota"),
)


def _strong(pace: Pace) -> dict[str, float]:
    run_ms = pace.step_ms * STEPS
    return {
        "slow_input": round(pace.step_ms * STRONG_SHARE, 1),
        "slow_rank": round(pace.step_ms * STRONG_SHARE, 1),
        "late_checkpoint": round(run_ms * STRONG_SHARE / CHECKPOINTS),
        "pause": round(run_ms * STRONG_SHARE / 1000, 2),
        "rate_cap": pace.strong_rate,
        "packet_loss": 2.0,
        "cpu_hog": 2.0,
        "cpu_quota": 50.0,
        "memory_traffic": 2.0,
    }


def _weak(pace: Pace) -> dict[str, tuple[float, float | None]]:
    """Return strength, and the part of the run; None for all of it."""
    run_ms = pace.step_ms * STEPS
    return {
        "slow_input": (round(pace.step_ms * WEAK_SHARE, 1), None),
        "slow_rank": (round(pace.step_ms * WEAK_SHARE, 1), None),
        "late_checkpoint": (round(run_ms * WEAK_SHARE / CHECKPOINTS), None),
        "pause": (round(run_ms * WEAK_SHARE / 1000, 2), None),
        "rate_cap": (pace.weak_rate, None),
        "packet_loss": (0.2, None),
        "cpu_hog": (1.0, 0.12),
        "cpu_quota": (85.0, None),
    }


def _fault(kind: str, strength: float, dice: random.Random, share: float | None = None) -> PlannedFault:
    """Return a fault on either rank; one that passes, or lasts for a part, begins in the middle of the run."""
    begin = MIDDLE if kind in PASSING or share else None
    return PlannedFault(kind, strength, dice.randrange(2), begin, round(MIDDLE + share, 2) if share else None)
