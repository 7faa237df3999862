"""Every configuration measured in several rounds, each in an order of its own: what studies are judged by."""

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median, stdev
from typing import Self

from benchmarks.tuning_live.kept import Kept, Measured
from benchmarks.tuning_live.plan import Plan
from crosswind.data.schema.trial import Configuration

Measure = Callable[[Configuration], float]


@dataclass(frozen=True)
class Truth:
    """Seconds per sample of every configuration, by its key, in all rounds."""

    repeats: Mapping[str, Sequence[float]]

    @classmethod
    def of(cls, rows: Iterable[Measured]) -> Self:
        """The rows by their configuration."""
        repeats = defaultdict[str, list[float]](list)
        for row in rows:
            repeats[row.key].append(row.seconds_per_sample)
        return cls(repeats)

    def best(self, count: int) -> list[str]:
        """The configurations of the smallest medians, the best first."""
        return sorted(self.repeats, key=lambda key: median(self.repeats[key]))[:count]

    def regret(self, key: str) -> float:
        """Return how much longer a sample takes than with the best configuration: 0.05 for 5 %."""
        [best] = self.best(1)
        return median(self.repeats[key]) / median(self.repeats[best]) - 1

    def within(self, regret: float) -> list[str]:
        """The configurations that lose no more than this."""
        return [key for key in self.repeats if self.regret(key) <= regret]

    @property
    def spread(self) -> float:
        """The median variability of a configuration: standard deviation over mean of its repeats."""
        return median(stdev(seconds) / mean(seconds) for seconds in self.repeats.values())


def measure_all(plan: Plan, measure: Measure, kept: Kept) -> Truth:
    """Measures what is not kept yet: all in every round, then the finalists in theirs."""
    configurations = {plan.space.key(configuration): configuration for configuration in plan.space.configurations()}
    rounds = range(plan.rounds)
    _measure_rounds(configurations, rounds, measure, kept)
    finalists = Truth.of(row for row in kept.measured if row.round in rounds).best(plan.finalists)
    final_rounds = range(plan.rounds, plan.rounds + plan.final_rounds)
    _measure_rounds({key: configurations[key] for key in finalists}, final_rounds, measure, kept)
    return Truth.of(kept.measured)


def _measure_rounds(
    configurations: Mapping[str, Configuration], rounds: Iterable[int], measure: Measure, kept: Kept
) -> None:
    done = {(row.round, row.key) for row in kept.measured}
    for number in rounds:
        order = sorted(configurations)
        random.Random(number).shuffle(order)
        for key in order:
            if (number, key) not in done:
                begun = time.monotonic()
                seconds_per_sample = measure(configurations[key])
                kept.add(Measured(key, number, seconds_per_sample, time.monotonic() - begun))
