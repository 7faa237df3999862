"""Plans: the runs to measure, their order and their faults, as data.

Runs of all cohorts and conditions are in one random order, so that the machine's drift affects all alike. The split
follows the order, as in time: models learn from the first half and are judged on the last third.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from crosswind.ingest.lab.injection import Injection

HOSTS = 4
RELAYED = 3  # the host behind a relay that can add latency; it slows its link, so that it has cohorts of its own
STEPS = 60
SHARES = (("train", 0.5), ("calibrate", 0.7), ("test", 1.0))  # up to which share of the order
SAMPLES_SEED = 20_261
QUICK_SEED = 1


@dataclass(frozen=True)
class Cohort:
    """One workload, configuration and scale; rank r runs on host r of `hosts`, again from the first after the last."""

    workload: str
    world_size: int
    batch: int
    bucket_mb: float
    threads: int = 1
    hosts: tuple[int, ...] = (0, 1, 2)

    @property
    def link(self) -> str:
        """Return the kind of link between its hosts: `relay` if there is one between them, else `direct`."""
        return "relay" if RELAYED in self.hosts else "direct"

    def place(self, rank: int) -> tuple[int, int]:
        """Return the host of a rank, and the number of its worker there."""
        return self.hosts[rank % len(self.hosts)], rank // len(self.hosts)

    def places(self) -> list[tuple[int, int]]:
        """Return the places of all ranks."""
        return [self.place(rank) for rank in range(self.world_size)]


@dataclass(frozen=True)
class PlannedFault:
    """A fault of one rank; begin and end are shares of the run, None from before it and to its end."""

    kind: str
    strength: float
    rank: int
    begin: float | None = None
    end: float | None = None

    def during(self, steps: int) -> tuple[int | None, int | None]:
        """Return the steps, in a run of so many, before which it begins and ends; None as above."""
        begin, end = (None if share is None else round(share * steps) for share in (self.begin, self.end))
        return begin, end

    def words(self, steps: int) -> str:
        """Return the fault as in a run's tag: `cpu_hog:1:2 from step 18 to step 36`."""
        begin, end = self.during(steps)
        times = "".join(f" {word} step {step}" for word, step in (("from", begin), ("to", end)) if step is not None)
        return f"{self.kind}:{self.rank}:{self.strength:g}{times}"


@dataclass(frozen=True)
class PlannedRun:
    """One run to measure; the neighbour is another user's job on the same hosts, which lasts about as long."""

    number: int
    cohort: Cohort
    faults: tuple[PlannedFault, ...]
    neighbour: Cohort | None
    split: str
    seed: int
    steps: int = STEPS

    def injection(self, fault: PlannedFault) -> Injection:
        """Return the fault on the host of its rank."""
        return Injection(fault.kind, fault.strength, self.cohort.place(fault.rank)[0], fault.rank)

    def marks(self) -> tuple[int, ...]:
        """Return the steps before which something begins or ends."""
        return tuple(sorted({step for fault in self.faults for step in fault.during(self.steps) if step is not None}))


@dataclass(frozen=True)
class Plan:
    """Runs in the order in which they are measured; `name` distinguishes the runs of plans in a store."""

    name: str
    runs: tuple[PlannedRun, ...]

    def cohorts(self) -> list[Cohort]:
        """Return every cohort, once."""
        return list(dict.fromkeys(run.cohort for run in self.runs))


COHORTS = (
    Cohort("byte-transformer", 2, 8, 1.0),
    Cohort("byte-transformer", 2, 12, 25.0),
    Cohort("byte-transformer", 4, 4, 1.0),
    Cohort("image-classifier", 2, 32, 1.0),
    Cohort("image-classifier", 2, 48, 1.0, threads=2),
    Cohort("image-classifier", 3, 16, 1.0),
    Cohort("embedding-recommender", 2, 64, 25.0),
    Cohort("embedding-recommender", 2, 64, 1.0),
    Cohort("embedding-recommender", 3, 32, 25.0),
)
RELAYED_COHORT = Cohort("image-classifier", 2, 32, 1.0, hosts=(0, RELAYED))
NEIGHBOUR = Cohort("image-classifier", 2, 64, 1.0)
STRENGTHS: Mapping[str, tuple[float, ...]] = {
    "packet_loss": (0.5, 1.0, 3.0),
    "neighbour_traffic": (1.0, 2.0, 4.0),
    "cpu_hog": (1.0, 2.0, 3.0),
    "cpu_quota": (70.0, 50.0, 30.0),
    "memory_traffic": (1.0, 2.0, 3.0),
    "disk_pressure": (1.0, 2.0, 4.0),
    "slow_input": (10.0, 25.0, 50.0),
    "slow_rank": (10.0, 25.0, 50.0),
    "late_checkpoint": (200.0, 500.0, 1000.0),
    "pause": (0.3, 0.7, 1.2),
}
RATES: Mapping[str, tuple[float, ...]] = {  # Mbit/s that a gradient needs a tenth of a second or less for
    "byte-transformer": (600.0, 300.0, 150.0),
    "image-classifier": (80.0, 40.0, 20.0),
    "embedding-recommender": (1200.0, 600.0, 300.0),
}
LATENCIES = (2.0, 5.0, 10.0)
HEALTHY = 11  # of each cohort
NEIGHBOURED = 3
PASSING = ("pause",)  # faults that begin and end by themselves
TO_THE_END = ("late_checkpoint", *PASSING)  # a shorter one might have no checkpoint within it


def samples(seed: int = SAMPLES_SEED) -> Plan:
    """Return the plan of the sample data: every cohort under every fault, and healthy."""
    dice = random.Random(seed)  # noqa: S311 - an experiment's order, no secret
    runs = [run for cohort in COHORTS for run in _of_cohort(cohort, dice)]
    runs += _of_relayed(dice)
    dice.shuffle(runs)
    return Plan(f"samples-{seed}", numbered(runs))


def quick(seed: int = QUICK_SEED) -> Plan:
    """Return eight runs of one cohort that show the effects of faults in a minute."""
    cohort = COHORTS[0]
    faults = (
        PlannedFault("slow_input", 40.0, rank=1),
        PlannedFault("cpu_hog", 2.0, rank=1),
        PlannedFault("rate_cap", 150.0, rank=0),
        PlannedFault("slow_rank", 40.0, rank=0, begin=0.5),
        PlannedFault("cpu_quota", 40.0, rank=0),
    )
    runs = [planned(cohort), planned(cohort), *(planned(cohort, fault) for fault in faults), planned(cohort)]
    return Plan(f"quick-{seed}", numbered(runs))


def planned(cohort: Cohort, *faults: PlannedFault, neighbour: Cohort | None = None) -> PlannedRun:
    """Return a run without a place in the order."""
    return PlannedRun(0, cohort, faults, neighbour, "", 0)


def numbered(runs: Sequence[PlannedRun]) -> tuple[PlannedRun, ...]:
    """Return the runs with their places in this order, their parts of the split and seeds."""
    return tuple(
        replace(run, number=number, split=_split(number, len(runs)), seed=number) for number, run in enumerate(runs)
    )


def _split(number: int, count: int) -> str:
    return next(name for name, share in SHARES if number < share * count)


def _of_cohort(cohort: Cohort, dice: random.Random) -> Iterator[PlannedRun]:
    for kind, strengths in {"rate_cap": RATES[cohort.workload], **STRENGTHS}.items():
        late = dice.randrange(2)
        for position, strength in enumerate(strengths):
            rank = dice.randrange(cohort.world_size)
            is_late = kind in PASSING or (position + late) % 2 == 0
            yield planned(cohort, _late(kind, strength, rank, dice) if is_late else PlannedFault(kind, strength, rank))
    yield from [planned(cohort)] * HEALTHY
    yield from [planned(cohort, neighbour=NEIGHBOUR)] * NEIGHBOURED
    fault = PlannedFault("slow_input", 25.0, dice.randrange(cohort.world_size))
    yield planned(cohort, fault, neighbour=NEIGHBOUR)


def _of_relayed(dice: random.Random) -> Iterator[PlannedRun]:
    cohort = RELAYED_COHORT
    for latency in LATENCIES:
        yield from [planned(cohort, PlannedFault("latency", latency, rank=1))] * 2
        yield from [planned(cohort, _late("latency", latency, 1, dice)) for _ in range(2)]
    for kind, strength in (("slow_input", 25.0), ("slow_rank", 25.0), ("packet_loss", 1.0)):
        yield planned(cohort, PlannedFault(kind, strength, dice.randrange(2)))
    yield from [planned(cohort)] * HEALTHY


def _late(kind: str, strength: float, rank: int, dice: random.Random) -> PlannedFault:
    """Return a fault that begins in the middle of the run; every other one also ends before the run does."""
    begin = round(dice.uniform(0.3, 0.6), 2)
    ends_early = kind not in TO_THE_END and dice.random() < 0.5
    return PlannedFault(kind, strength, rank, begin, round(begin + 0.3, 2) if ends_early else None)
