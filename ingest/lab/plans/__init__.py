"""Plans of runs to measure, by name, made from a seed."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from crosswind.ingest.lab.plans.captures import CAPTURES_SEED, captures
from crosswind.ingest.lab.plans.plan import QUICK_SEED, SAMPLES_SEED, Plan, quick, samples
from crosswind.ingest.lab.plans.validation import VALIDATION_SEED, validation

PLANS: Mapping[str, Callable[[int], Plan]] = MappingProxyType(
    {"quick": quick, "samples": samples, "validation": validation, "captures": captures}
)
SEEDS: Mapping[str, int] = MappingProxyType(
    {"quick": QUICK_SEED, "samples": SAMPLES_SEED, "validation": VALIDATION_SEED, "captures": CAPTURES_SEED}
)
