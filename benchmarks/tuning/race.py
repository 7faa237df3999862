"""Tuners raced over tasks: the best found so far, over the optimum, after every trial; kept from run to run."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.tuning.peers import HAS_OPTUNA, OptunaTpe, TopTenThenTpe
from benchmarks.tuning.tables import Table, Task, table
from crosswind.data.prediction import Floats
from crosswind.data.trial import Trial, TrialState
from crosswind.models.tuner import GaussianProcessTuner, RandomTuner, Space, Tuner
from crosswind.models.tuner.portfolio.tuner import PortfolioTuner
from crosswind.models.tuner.source import Source

TRIALS = 80
RESULTS = "TUNER_RESULTS"  # a folder; what lies there is not computed again

Make = Callable[[Table, Task, int], Tuner]


@dataclass(frozen=True)
class Racer:
    """A tuner in the race; `version` changes with its code, so that old results are not taken for new ones."""

    name: str
    make: Make
    version: str = ""

    @property
    def folder(self) -> str:
        return f"{self.name}-{self.version}" if self.version else self.name


def _shuffled(sources: Sequence[Source], seed: int) -> list[Source]:
    rng = np.random.default_rng(seed)
    return [
        replace(each, objectives=[each.objectives[i] for i in rng.permutation(len(each.objectives))])
        for each in sources
    ]


def _portfolio(target: Table, task: Task, seed: int) -> Tuner:
    return PortfolioTuner(target.space, seed, task.drawn(seed), features=task.described(task.target))


def _misled(target: Table, task: Task, seed: int) -> Tuner:
    return PortfolioTuner(target.space, seed, _shuffled(task.drawn(seed), seed), features=task.described(task.target))


def _top_ten(target: Table, task: Task, seed: int) -> Tuner:
    return TopTenThenTpe(target.space, seed, task.drawn(seed))


def _blind(make: Callable[[Space, int], Tuner]) -> Make:
    """A tuner that is given no sources."""
    return lambda target, _task, seed: make(target.space, seed)


PORTFOLIO_VERSION = os.environ.get("TUNER_VERSION", "1")
WARM = [Racer("portfolio", _portfolio, PORTFOLIO_VERSION)]
COLD = [
    Racer("portfolio_cold", _blind(PortfolioTuner), PORTFOLIO_VERSION),
    Racer("gaussian_process", _blind(GaussianProcessTuner)),
    Racer("random", _blind(RandomTuner)),
]
MISLED = Racer("portfolio_misled", _misled, PORTFOLIO_VERSION)
if HAS_OPTUNA:
    WARM.append(Racer("top10_tpe", _top_ten))
    COLD.append(Racer("optuna_tpe", _blind(OptunaTpe)))
RACERS = {racer.name: racer for racer in [*WARM, *COLD, MISLED]}


def curve(racer: Racer, task: Task, seed: int, trials: int = TRIALS) -> Floats:
    """Best so far / optimum after each trial, shape (trials,); infinite before the first valid one."""
    kept = _kept(racer, task, seed)
    if kept is not None and kept.exists():
        return np.array(json.loads(kept.read_text()), np.float64)[:trials]
    found = _raced(racer, task, seed, trials)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.with_suffix(".part").write_text(json.dumps(found.tolist()))
        kept.with_suffix(".part").rename(kept)
    return found


def medians(racer: Racer, task: Task, seeds: Sequence[int], shown: Sequence[int]) -> Floats:
    """Median over the seeds after so many trials, shape (len(shown),)."""
    curves = np.array([curve(racer, task, seed) for seed in seeds])
    return np.asarray(np.median(curves, axis=0)[np.array(shown) - 1])


def geometric(rows: Mapping[str, Floats]) -> Floats:
    """Geometric mean over the tasks, shape (n_shown,)."""
    return np.asarray(np.exp(np.mean(np.log(list(rows.values())), axis=0)))


def _raced(racer: Racer, task: Task, seed: int, trials: int) -> Floats:
    target = table(task.target)
    tuner = racer.make(target, task, seed)
    best = np.full(trials, np.inf)
    for place in range(trials):
        suggested = tuner.suggest(1)
        if not suggested:
            break
        objective = target.objectives[target.space.key(suggested[0])]
        state = TrialState.FAILED if objective is None else TrialState.DONE
        tuner.observe([Trial(suggested[0], state, objective, trial_id=str(place))])
        best[place] = np.inf if objective is None else objective / target.optimum
    return np.asarray(np.minimum.accumulate(best))


def _kept(racer: Racer, task: Task, seed: int) -> Path | None:
    folder = os.environ.get(RESULTS)
    return Path(folder) / racer.folder / task.target.replace("/", "__") / f"{seed}.json" if folder else None
