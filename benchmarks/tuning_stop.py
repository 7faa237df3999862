"""Ends of searches with `stop: auto`: when they come, and how often they come too early.

Simulated: the true objective of every configuration is known, each measurement is multiplied by log-normal noise.
Every search goes on to the end; it would have stopped at the first trial after which the next is expected to gain less
than the noise. Too early is an end after which the answer still became better by more than the noise.
"""

import argparse
import json
import platform
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from benchmarks.tuning_noise import LANDSCAPES, SPACE
from crosswind.data.schema.trial import Study, Trial, TrialRecord, TrialState
from crosswind.models.tuner.search.enough import measured_min, prospect_of
from crosswind.models.tuner.search.gaussian_process_tuner import GaussianProcessTuner
from crosswind.models.tuner.search.incumbents import Beliefs
from crosswind.models.tuner.search.repeats import Repeats
from crosswind.models.tuner.space.space import Space

NOISES = (0.02, 0.05, 0.1)
FIRST, SEEDS = 6, 6  # the smallest number of trials was chosen on the seeds before
BUDGETS = {"3 parameters": 40, "6 parameters": 70}
WIDE = Space.from_json(
    {
        **SPACE.as_json(),
        "threads": {"kind": "int", "low": 1, "high": 8},
        "algorithm": {"kind": "categorical", "values": ["ring", "tree", "direct"]},
        "depth": {"kind": "int", "low": 1, "high": 4},
    }
)
SPACES = {"3 parameters": SPACE, "6 parameters": WIDE}


@dataclass(frozen=True)
class End:
    """The end of one search: after how many trials, the answer's regret then and at the end of the budget."""

    trials: int
    regret: float
    final: float


def ended(space: Space, truth: dict[str, float], noise: float, *, seed: int, budget: int) -> End:
    """Return where a search of so many trials would have stopped."""
    tuner, rng = GaussianProcessTuner(space, seed), np.random.default_rng([seed, 1])
    study = Study("s1", "stop", space.as_json(), "seconds", "s", seed, 0, stop="auto")
    records: list[TrialRecord] = []
    stopped: tuple[int, float] | None = None
    while len(records) < budget:
        [chosen] = tuner.suggest(1)
        measured = truth[space.key(chosen)] * float(np.exp(noise * rng.standard_normal()))
        trial = Trial(chosen, TrialState.DONE, measured, f"{len(records):04d}")
        tuner.observe([trial])
        records.append(TrialRecord(trial, "s1"))
        if stopped is None and len(records) >= measured_min(len(space.domains)):
            prospect = prospect_of(study, records)
            if prospect and prospect.is_enough:
                stopped = len(records), _regret(space, records, truth, seed)
    final = _regret(space, records, truth, seed)
    return End(*(stopped or (budget, final)), final)


def _regret(space: Space, records: list[TrialRecord], truth: dict[str, float], seed: int) -> float:
    configurations = [record.trial.configuration for record in records]
    beliefs = Beliefs.of(Repeats.of(space, configurations, [record.trial.objective or 0.0 for record in records]), seed)
    answer = beliefs.repeats.keys[int(np.argmin(beliefs.process.at_measured()[0]))]
    return truth[answer] / min(truth.values()) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    seeds = parser.parse_known_args()[0].seeds
    figures: dict[str, object] = {}
    print(f"{'space':<14}{'noise':>6}{'trials':>8}{'regret':>9}{'at the end':>12}{'too early':>11}  of {seeds} seeds")
    for title, space in SPACES.items():
        configurations = space.configurations()
        keys, points = [space.key(values) for values in configurations], space.coordinates(configurations)
        ends: dict[float, list[End]] = defaultdict(list)
        for noise in NOISES:
            for landscape in LANDSCAPES:
                for seed in range(FIRST, FIRST + seeds):
                    values = landscape(points, np.random.default_rng([seed, 0])).tolist()
                    truth = dict(zip(keys, values, strict=True))
                    ends[noise].append(ended(space, truth, noise, seed=seed, budget=BUDGETS[title]))
            trials, regret, final = (
                float(np.mean([getattr(end, name) for end in ends[noise]])) for name in ("trials", "regret", "final")
            )
            early = float(np.mean([end.regret - end.final > noise for end in ends[noise]]))
            print(f"{title:<14}{noise:6.0%}{trials:8.1f}{regret:9.2%}{final:12.2%}{early:11.0%}", flush=True)
            name = f"{title[0]}_{noise * 100:.0f}"
            figures |= {f"{name}_trials": trials, f"{name}_lost": regret - final, f"{name}_early": early}
    print(
        json.dumps(figures | {"seeds": seeds, "machine": f"{platform.machine()}, Python {platform.python_version()}"})
    )


if __name__ == "__main__":
    main()
