"""Bayesian optimisation: a space-filling start, then expected improvement under a Gaussian process."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from scipy.spatial.distance import cdist

from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Configuration, Trial
from crosswind.models.gp.gaussian_process import Process, expected_improvement
from crosswind.models.tuner.search.knowledge import Knowledge
from crosswind.models.tuner.search.one_thread import one_thread
from crosswind.models.tuner.search.pool import Pool
from crosswind.models.tuner.search.tuner import check_count
from crosswind.models.tuner.search.validity import chance_of_success
from crosswind.models.tuner.space.space import Space

START = 5  # configurations of the space-filling start
DESIGNS = 50  # random starts, of which the most representative is taken
REPRESENTED = 300  # configurations that a start is compared with
DONE_MIN = 2
DONE_MAX = 200  # the process costs the cube of it; beyond, the best half and the newest half are kept
CANDIDATES = 2000  # random ones that are weighed of a larger space, others after every trial
AROUND = 100  # of a larger space that is listed, nearest to each of the TOPS best measured
TOPS = 3
NEIGHBOURS = 8  # draws a parameter around the best configuration


class GaussianProcessTuner:
    """Expected improvement times the chance of success, over the free configurations or, of very many, some of them.

    The logarithm of the objective is modelled where all objectives are positive. Pending trials and the suggestions
    before count as measured at their expected values. Failed and infeasible trials lower the chance of success
    nearby and never enter the process as numbers.
    """

    name: ClassVar[str] = "gaussian_process"

    def __init__(self, space: Space, seed: int) -> None:
        self._space, self._seed = space, seed
        self._knowledge = Knowledge(space)
        self._everything = Pool.of(space, space.configurations()) if space.is_enumerable else None
        self._start = representative(self._everything or Pool.of(space, space.random(START * DESIGNS, seed)), seed)

    def suggest(self, count: int) -> list[Configuration]:
        """The next configurations to try. Raises: InvalidInputError."""
        check_count(count)
        taken = self._knowledge.taken
        untried = [configuration for configuration in self._start if self._space.key(configuration) not in taken]
        chosen = untried[: min(count, max(START - len(taken), 0))]
        return [*chosen, *self._improving(count - len(chosen), chosen)]

    def observe(self, trials: Sequence[Trial]) -> None:
        """Learns the newest state of these trials. Raises: InvalidInputError."""
        self._knowledge.add(trials)

    def _improving(self, count: int, chosen: Sequence[Configuration]) -> list[Configuration]:
        """`count` configurations beside the chosen ones, by expected improvement."""
        if count == 0:
            return []
        free = self._candidates().without(
            self._knowledge.taken | {self._space.key(configuration) for configuration in chosen}
        )
        done, objectives = self._knowledge.done
        if len(done) < DONE_MIN or len(free) == 0:
            order = np.random.default_rng(self._seed).permutation(len(free))
            return [free.configurations[index] for index in order[:count]]
        kept = _telling(objectives)
        assumed = self._points([*self._knowledge.pending, *chosen])
        with one_thread():
            process = Process.fitted(self._points(done)[kept], standardised(objectives)[kept])
            best = self._best(free, count, process.believing(assumed))
        return [free.configurations[index] for index in best]

    def _best(self, free: Pool, count: int, process: Process) -> list[int]:
        done, invalid = self._knowledge.done[0][-DONE_MAX:], self._knowledge.invalid[-DONE_MAX:]
        chance = chance_of_success(free.points, self._points(done), self._points(invalid))
        picks: list[int] = []
        for _ in range(min(count, len(free))):
            mean, deviation = process.predict(free.points)
            score = expected_improvement(mean, deviation, process.expected_best) * chance
            score[picks] = -np.inf
            picks.append(int(np.argmax(score)))
            if len(picks) < count:
                process = process.believing(free.points[picks[-1:]])
        return picks

    def _candidates(self) -> Pool:
        """The configurations to choose from now."""
        done, objectives = self._knowledge.done
        seed = self._seed + 1 + len(self._knowledge.taken)  # other candidates after every trial
        if self._everything is not None:
            best = [done[place] for place in np.argsort(objectives, kind="stable")[:TOPS]]
            count = CANDIDATES + len(self._knowledge.taken)
            return some_of(self._everything, self._points(best), np.random.default_rng(seed), count)
        near = self._space.neighbours(done[int(np.argmin(objectives))], NEIGHBOURS, seed) if done else []
        return Pool.of(self._space, [*near, *self._space.random(CANDIDATES, seed)])

    def _points(self, configurations: Sequence[Configuration]) -> Floats:
        return self._space.coordinates(configurations)


def some_of(pool: Pool, centres: Floats, rng: np.random.Generator, count: int) -> Pool:
    """`count` random ones of the pool and the AROUND nearest to each centre; all of a pool that is no larger."""
    if len(pool) <= count + AROUND:
        return pool
    near = [np.argpartition(np.abs(pool.points - centre).sum(axis=1), AROUND)[:AROUND] for centre in centres]
    places = np.unique(np.concatenate([rng.permutation(len(pool))[:count], *near]))
    configurations = [pool.configurations[place] for place in places.tolist()]
    return Pool(configurations, [pool.keys[place] for place in places.tolist()], pool.points[places])


def standardised(objectives: Sequence[float]) -> Floats:
    """Objectives with mean 0 and standard deviation 1, on the logarithm's scale if all are positive; shape (n,)."""
    y = np.array(objectives, dtype=np.float64)
    if np.all(y > 0):
        y = np.log(y)
    spread = float(y.std())
    return np.asarray((y - y.mean()) / (spread if spread > 0 else 1.0), np.float64)


def _telling(objectives: Sequence[float]) -> list[int]:
    """Indices of the measurements to learn from: all, or the best and the newest when there are very many."""
    if len(objectives) <= DONE_MAX:
        return list(range(len(objectives)))
    newest = range(len(objectives) - DONE_MAX // 2, len(objectives))
    best = np.argsort(objectives, kind="stable")[: DONE_MAX // 2]
    return sorted({*newest, *best.tolist()})


def representative(pool: Pool, seed: int) -> list[Configuration]:
    """START random configurations: of several sets, the one distributed most like the whole pool.

    Corners, which a largest-distance design seeks, are rarely good. Source: Mak and Joseph 2018, "Support points".
    """
    rng = np.random.default_rng(seed)
    whole = pool.points[rng.permutation(len(pool))[:REPRESENTED]]
    designs = [rng.permutation(len(pool))[:START] for _ in range(DESIGNS)]
    best = min(designs, key=lambda design: _energy_distance(pool.points[design], whole))
    return [pool.configurations[index] for index in best]


def _energy_distance(points: Floats, whole: Floats) -> float:
    """Twice the mean distance to the whole less that among themselves; smallest for equal distributions."""
    if len(points) == 0:
        return 0.0
    return float(2 * cdist(points, whole).mean() - cdist(points, points).mean())
