"""Quality of the chosen answer under noise: the smallest measurement, the posterior, and the posterior with repeats.

Simulated: the true objective of every configuration is known, each measurement is multiplied by log-normal noise.
All arms spend the same number of measurements, and search with the same tuner.
"""

import argparse
import json
import platform
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Trial, TrialState
from crosswind.models.tuner.search.gaussian_process_tuner import GaussianProcessTuner
from crosswind.models.tuner.search.incumbents import Answer
from crosswind.models.tuner.search.replicating_tuner import ReplicatingTuner
from crosswind.models.tuner.search.tuner import Tuner
from crosswind.models.tuner.space.space import Space

NOISES = (0.05, 0.1, 0.2)
MEASUREMENTS = 20
SEEDS = 20
SPACE = Space.from_json(
    {
        "batch": {"kind": "ordinal", "values": [1, 2, 4, 8, 16, 32, 64, 128]},
        "bucket_mb": {"kind": "ordinal", "values": [0.5, 1, 2, 4, 8, 16]},
        "fused": {"kind": "boolean"},
    }
)
ARMS = ("smallest measurement", "posterior", "posterior, repeats")


def two_near_optima(points: Floats, rng: np.random.Generator) -> Floats:
    """Two valleys, 2 % apart in depth, at random places."""
    a, b = points[rng.integers(len(points), size=2)]
    first, second = (((points - optimum) ** 2).sum(axis=1) for optimum in (a, b))
    return np.asarray(1 + np.minimum(first, 0.02 + second), np.float64)


def bowl(points: Floats, rng: np.random.Generator) -> Floats:
    """One valley of random place and steepness by coordinate, with an interaction."""
    shifted = points - points[rng.integers(len(points))]
    steep = rng.uniform(0.2, 1.5, points.shape[1])
    return np.asarray(1 + (steep * shifted**2).sum(axis=1) + 0.2 * abs(shifted[:, 0] * shifted[:, 1]), np.float64)


def rough(points: Floats, rng: np.random.Generator) -> Floats:
    """Main effects, and a part of every configuration's own that no neighbour tells (5 %)."""
    return np.asarray(bowl(points, rng) * np.exp(0.05 * rng.standard_normal(len(points))), np.float64)


LANDSCAPES: tuple[Callable[[Floats, np.random.Generator], Floats], ...] = (two_near_optima, bowl, rough)


@dataclass(frozen=True)
class Simulation:
    """One search: the true objectives by key, the noise, and the seed of everything random."""

    truth: dict[str, float]
    noise: float
    seed: int

    def trials(self, tuner: Tuner) -> list[Trial]:
        """Return the trials that the tuner measures."""
        rng = np.random.default_rng([self.seed, 1])
        trials: list[Trial] = []
        while len(trials) < MEASUREMENTS:
            [chosen] = tuner.suggest(1)
            measured = self.truth[SPACE.key(chosen)] * float(np.exp(self.noise * rng.standard_normal()))
            trials.append(Trial(chosen, TrialState.DONE, measured, f"{len(trials)}"))
            tuner.observe(trials[-1:])
        return trials

    def answers(self) -> dict[str, tuple[float, Answer | None]]:
        """Of every arm: the regret of what it chose, and the answer with its interval where it gives one."""
        plain, repeating = self._tuner(share=0.0), self._tuner(share=0.3)
        lowest = min(self.trials(plain), key=lambda trial: trial.objective or np.inf)
        self.trials(repeating)
        chosen = plain.answer(), repeating.answer()
        return {
            ARMS[0]: (self._regret(SPACE.key(lowest.configuration)), None),
            ARMS[1]: (self._regret(SPACE.key(chosen[0].configuration)), chosen[0]),
            ARMS[2]: (self._regret(SPACE.key(chosen[1].configuration)), chosen[1]),
        }

    def covers(self, answer: Answer) -> bool:
        """Return whether the interval holds the true objective of the chosen configuration."""
        return answer.low <= self.truth[SPACE.key(answer.configuration)] <= answer.high

    def _tuner(self, share: float) -> ReplicatingTuner:
        return ReplicatingTuner(SPACE, self.seed, GaussianProcessTuner(SPACE, self.seed), share=share)

    def _regret(self, key: str) -> float:
        return self.truth[key] / min(self.truth.values()) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    seeds = parser.parse_known_args()[0].seeds
    configurations = SPACE.configurations()
    keys, points = [SPACE.key(configuration) for configuration in configurations], SPACE.coordinates(configurations)
    figures: dict[str, object] = {}
    print(
        f"mean regret of the answer after {MEASUREMENTS} measurements, seeds 0-{seeds - 1}; coverage of 90 % intervals"
    )
    print(f"{'landscape':<18}{'noise':>6}" + "".join(f"{arm:>22}" for arm in ARMS) + f"{'covered':>16}{'repeats':>9}")
    for landscape in LANDSCAPES:
        for noise in NOISES:
            regrets, covered, repeats = defaultdict(list), defaultdict(list), []
            for seed in range(seeds):
                values = landscape(points, np.random.default_rng([seed, 0]))
                simulation = Simulation(dict(zip(keys, values.tolist(), strict=True)), noise, seed)
                for arm, (regret, answer) in simulation.answers().items():
                    regrets[arm].append(regret)
                    if answer:
                        covered[arm].append(simulation.covers(answer))
                repeats.append(answer.repeats if answer else 0)
            row = {arm: float(np.mean(regrets[arm])) for arm in ARMS}
            shares = [float(np.mean(covered[arm])) for arm in ARMS[1:]]
            cells = "".join(f"{mean_regret:22.2%}" for mean_regret in row.values())
            title = landscape.__name__
            print(f"{title:<18}{noise:6.0%}{cells}{shares[0]:8.0%}{shares[1]:8.0%}{np.mean(repeats):9.1f}", flush=True)
            for arm, name in zip(ARMS, ("smallest", "posterior", "repeats"), strict=True):
                figures[f"{title}_{noise * 100:.0f}_{name}_regret"] = round(row[arm], 4)
            figures[f"{title}_{noise * 100:.0f}_coverage"] = round(shares[1], 3)
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    print(json.dumps(figures | {"seeds": seeds, "measurements": MEASUREMENTS, "machine": machine}))


if __name__ == "__main__":
    main()
