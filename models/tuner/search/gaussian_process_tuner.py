"""Bayesian optimisation: a space-filling start, then expected improvement under a Gaussian process."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Configuration, Trial
from crosswind.models.tuner.search.design import DESIGNS, START, representative
from crosswind.models.tuner.search.observed_trials import ObservedTrials
from crosswind.models.tuner.search.pool import Pool
from crosswind.models.tuner.search.tuner import check_count
from crosswind.models.tuner.space.space import Space

if TYPE_CHECKING:  # SciPy, which a study's first trials do without
    from crosswind.models.gp.gaussian_process import Process

DONE_MIN = 2
DONE_MAX = 200  # the process costs the cube of it; beyond, the best half and the newest half count
CANDIDATES = 2000  # random ones of a larger space, others after every trial
AROUND = 100  # of a larger space that is listed, nearest to each of the TOPS best measured
TOPS = 3
NEIGHBOURS = 8  # draws a parameter around the best configuration


class GaussianProcessTuner:
    """Expected improvement times the chance of success, over the free configurations or, of very many, some of them.

    The logarithm of the objective is modelled where all objectives are positive. Pending trials and suggestions before
    count as measured at their expected values, pruned trials as worse than the middle of those measured. Failed and
    infeasible trials lower the chance of success nearby and never enter the process as numbers.

    Args:
        space: The configurations to choose from.
        seed: Of the start and the candidates.

    Example:
        >>> tuner = GaussianProcessTuner(Space.from_json({"threads": {"kind": "int", "low": 1, "high": 8}}), seed=0)
        >>> [configuration] = tuner.suggest(1)
        >>> tuner.observe([Trial(configuration, TrialState.DONE, objective=0.25)])
    """

    name: ClassVar[str] = "gaussian_process"

    def __init__(self, space: Space, seed: int) -> None:
        self._space, self._seed = space, seed
        self._trials = ObservedTrials(space)
        self._everything = Pool.of(space, space.configurations()) if space.is_enumerable else None
        self._start = representative(self._everything or Pool.of(space, space.random(START * DESIGNS, seed)), seed)

    def suggest(self, count: int) -> list[Configuration]:
        """Return the next configurations to try. Raises: InvalidInputError."""
        check_count(count)
        chosen = self._trials.left_of_start(self._start, count)
        return [*chosen, *self._improving(count - len(chosen), chosen)]

    def observe(self, trials: Sequence[Trial]) -> None:
        """Learn the newest state of these trials. Raises: InvalidInputError."""
        self._trials.add(trials)

    def _improving(self, count: int, chosen: Sequence[Configuration]) -> list[Configuration]:
        """Return `count` configurations besides the chosen ones, by expected improvement."""
        if count == 0:
            return []
        free = self._candidates().without(self._trials.taken_with(chosen))
        done, objectives = self._trials.done
        if len(done) < DONE_MIN or len(free) == 0:
            order = np.random.default_rng(self._seed).permutation(len(free))
            return [free.configurations[index] for index in order[:count]]
        from crosswind.models.gp.gaussian_process import Process  # noqa: PLC0415 - see above
        from crosswind.models.gp.one_thread import one_thread  # noqa: PLC0415
        from crosswind.models.tuner.search.scale import standardised  # noqa: PLC0415

        rows = _best_and_newest(objectives)
        assumed = self._points([*self._trials.pending, *chosen])
        with one_thread():
            measured = Process.fitted(self._points(done)[rows], standardised(objectives)[rows])
            process = measured.with_worse(self._points(self._trials.pruned[-DONE_MAX:]))
            best = self._best(free, count, process.believing(assumed))
        return [free.configurations[index] for index in best]

    def _best(self, free: Pool, count: int, process: "Process") -> list[int]:
        from crosswind.models.gp.gaussian_process import expected_improvement  # noqa: PLC0415 - see above
        from crosswind.models.tuner.search.validity import chance_of_success  # noqa: PLC0415

        done, invalid = self._trials.done[0][-DONE_MAX:], self._trials.invalid[-DONE_MAX:]
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
        """Return the configurations to choose from now."""
        done, objectives = self._trials.done
        seed = self._seed + 1 + len(self._trials.taken)  # other candidates after every trial
        if self._everything is not None:
            best = [done[place] for place in np.argsort(objectives, kind="stable")[:TOPS]]
            count = CANDIDATES + len(self._trials.taken)
            return _some_of(self._everything, self._points(best), np.random.default_rng(seed), count)
        near = self._space.neighbours(done[int(np.argmin(objectives))], NEIGHBOURS, seed) if done else []
        return Pool.of(self._space, [*near, *self._space.random(CANDIDATES, seed)])

    def _points(self, configurations: Sequence[Configuration]) -> Floats:
        return self._space.coordinates(configurations)


def _some_of(pool: Pool, centres: Floats, rng: np.random.Generator, count: int) -> Pool:
    """Return `count` random ones of the pool and the AROUND nearest to each centre; all of a pool no larger than that.

    centres: shape (n_centres, n_coordinates).
    """
    if len(pool) <= count + AROUND:
        return pool
    near = [np.argpartition(np.abs(pool.points - centre).sum(axis=1), AROUND)[:AROUND] for centre in centres]
    places = np.unique(np.concatenate([rng.permutation(len(pool))[:count], *near]))
    configurations = [pool.configurations[place] for place in places.tolist()]
    return Pool(configurations, [pool.keys[place] for place in places.tolist()], pool.points[places])


def _best_and_newest(objectives: Sequence[float]) -> list[int]:
    """Return the indices of the measurements to learn from: all, or of very many the best and the newest."""
    if len(objectives) <= DONE_MAX:
        return list(range(len(objectives)))
    newest = range(len(objectives) - DONE_MAX // 2, len(objectives))
    best = np.argsort(objectives, kind="stable")[: DONE_MAX // 2]
    return sorted({*newest, *best.tolist()})
