"""Tuners raced over tasks: the best found so far, over the optimum, after every trial; kept from run to run."""

import importlib
import itertools
import json
import multiprocessing
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.tuning.peers import Botorch, OptunaGp, OptunaTpe, Skopt, Smac, TopTenThenTpe, has
from benchmarks.tuning.tables import Table, Task, table
from crosswind.data.files import published
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Trial, TrialState
from crosswind.models.tuner.search.gaussian_process_tuner import GaussianProcessTuner
from crosswind.models.tuner.search.portfolio.tuner import PortfolioTuner
from crosswind.models.tuner.search.random_tuner import RandomTuner
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.search.tuner import Tuner
from crosswind.models.tuner.space.space import Space

TRIALS = 80
BATCH = 8
RESULTS = "TUNER_RESULTS"  # a folder; what lies there is not computed again

Make = Callable[[Table, Task, int], Tuner]


@dataclass(frozen=True)
class Racer:
    """A tuner in the race; `version` changes with its code, so that old results are not taken for new ones."""

    name: str
    make: Make
    version: str = ""
    has_sources: bool = False
    batch: int = 1  # configurations that are measured at once

    @property
    def folder(self) -> str:
        return f"{self.name}-{self.version}" if self.version else self.name


def _shuffled(sources: Sequence[Source], seed: int) -> list[Source]:
    rng = np.random.default_rng(seed)
    return [
        replace(source, objectives=[source.objectives[i] for i in rng.permutation(len(source.objectives))])
        for source in sources
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


PORTFOLIO_VERSION = os.environ.get("TUNER_VERSION", "3")
WARM = [Racer("portfolio", _portfolio, PORTFOLIO_VERSION, has_sources=True)]
COLD = [
    Racer("portfolio_cold", _blind(PortfolioTuner), PORTFOLIO_VERSION),
    Racer("gaussian_process", _blind(GaussianProcessTuner), "2"),
    Racer("random", _blind(RandomTuner)),
]
MISLED = Racer("portfolio_misled", _misled, PORTFOLIO_VERSION, has_sources=True)
PEERS = {"optuna": [OptunaTpe, OptunaGp], "skopt": [Skopt], "smac": [Smac], "botorch": [Botorch]}
COLD += [Racer(peer.name, _blind(peer)) for module, peers in PEERS.items() if has(module) for peer in peers]
if has("optuna"):
    WARM.append(Racer("top10_tpe", _top_ten, has_sources=True))
BATCHED = [replace(racer, name=f"{racer.name}_by_{BATCH}", batch=BATCH) for racer in (*WARM, *COLD[:2])]
RACERS = {racer.name: racer for racer in [*WARM, *COLD, MISLED, *BATCHED]}


def race(racer: Racer, tasks: Sequence[Task], seeds: Sequence[int]) -> Floats:
    """Best so far / optimum, shape (n_tasks, n_seeds, TRIALS); infinite before the first valid one.

    Runs as many searches at once as there are cores: nothing is timed.
    """
    wanted = [(racer.name, task, seed) for task, seed in itertools.product(tasks, seeds)]
    with multiprocessing.get_context("fork").Pool(os.cpu_count(), _one_thread) as pool:
        curves = pool.starmap(curve, wanted, chunksize=1)
    return np.array(curves).reshape(len(tasks), len(seeds), TRIALS)


def _one_thread() -> None:
    """Searches side by side take a core each."""
    threadpool_limits(1)
    if has("torch"):
        importlib.import_module("torch").set_num_threads(1)


def curve(name: str, task: Task, seed: int) -> Floats:
    """One search of the racer of that name, shape (TRIALS,); one that ended early stays where it is."""
    racer = RACERS[name]
    kept = _kept(racer, task, seed)
    if kept is not None and kept.exists():
        return np.array(json.loads(kept.read_text()), np.float64)
    ratios = _raced(racer, task, seed)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with published(kept, is_durable=False) as file:
            file.write(json.dumps(ratios.tolist()).encode())
    return ratios


def geometric(ratios: Floats) -> Floats:
    """Geometric mean over the first axis."""
    return np.asarray(np.exp(np.mean(np.log(ratios), axis=0)))


def _raced(racer: Racer, task: Task, seed: int) -> Floats:
    target = table(task.target)
    tuner = racer.make(target, task, seed)
    ratios: list[float] = []
    while len(ratios) < TRIALS and (batch := tuner.suggest(min(racer.batch, TRIALS - len(ratios)))):
        measured = [target.objectives[target.space.key(configuration)] for configuration in batch]
        tuner.observe(
            [
                Trial(
                    configuration, TrialState.FAILED if value is None else TrialState.DONE, value, trial_id=str(place)
                )
                for place, (configuration, value) in enumerate(zip(batch, measured, strict=True), start=len(ratios))
            ]
        )
        ratios += [np.inf if value is None else max(value / target.optimum, 1.0) for value in measured]
    return np.minimum.accumulate(np.pad(ratios, (0, TRIALS - len(ratios)), constant_values=np.inf))


def _kept(racer: Racer, task: Task, seed: int) -> Path | None:
    folder = os.environ.get(RESULTS)
    place = "__".join((task.target, *(task.sources if racer.has_sources else ()))).replace("/", "_")
    return Path(folder) / racer.folder / place / f"{seed}.json" if folder else None
