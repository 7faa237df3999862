"""The plan for judging which ranks `crosswind run --trace auto` chooses: faults of single ranks, in runs of four.

Kinds, strengths and cohorts were fixed before any run of it was seen. Every kind disturbs every rank once in each
cohort; half of the faults begin in the middle of the run. All are in one random order.
"""

import random
from collections.abc import Iterator, Mapping

from crosswind.ingest.lab.plans.plan import PASSING, Cohort, Plan, PlannedFault, PlannedRun, numbered, planned

CAPTURES_SEED = 3
RANKS = 4
COHORTS = (Cohort("byte-transformer", RANKS, 4, 1.0), Cohort("image-classifier", RANKS, 12, 1.0))
STRENGTHS: Mapping[str, tuple[float, float]] = {  # in units of `crosswind lab faults`
    "slow_input": (25.0, 50.0),
    "slow_rank": (25.0, 50.0),
    "late_checkpoint": (500.0, 1000.0),
    "pause": (0.7, 1.2),
    "cpu_hog": (2.0, 3.0),
    "cpu_quota": (50.0, 30.0),
}
HEALTHY = 4  # of each cohort
MIDDLE = 0.4  # of a run


def captures(seed: int = CAPTURES_SEED) -> Plan:
    """Return two cohorts of four ranks, each healthy, and under every fault of one rank at two strengths."""
    dice = random.Random(seed)  # noqa: S311 - an experiment's order, no secret
    runs = list(_disturbed(dice)) + [planned(cohort) for cohort in COHORTS for _ in range(HEALTHY)]
    dice.shuffle(runs)
    return Plan(f"captures-{seed}", numbered(runs))


def _disturbed(dice: random.Random) -> Iterator[PlannedRun]:
    for cohort in COHORTS:
        for kind, strengths in STRENGTHS.items():
            for number, rank in enumerate(dice.sample(range(RANKS), RANKS)):
                is_late = kind in PASSING or number in (0, RANKS - 1)
                yield planned(cohort, PlannedFault(kind, strengths[number % 2], rank, MIDDLE if is_late else None))
