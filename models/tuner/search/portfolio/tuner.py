"""A portfolio of models that starts from the measurements of other studies."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Configuration, Trial
from crosswind.models.gp.gaussian_process import Process
from crosswind.models.gp.one_thread import one_thread
from crosswind.models.tuner.search.design import START, representative
from crosswind.models.tuner.search.observed_trials import ObservedTrials
from crosswind.models.tuner.search.pool import Pool
from crosswind.models.tuner.search.portfolio.candidates import (
    TOP_ROWS,
    TOPS,
    Candidates,
    DrawnSupply,
    ListedSupply,
    Supply,
    expectations,
)
from crosswind.models.tuner.search.portfolio.fitted_source import FittedSource, best_and_spread, feature_numbers
from crosswind.models.tuner.search.portfolio.rotation import turn
from crosswind.models.tuner.search.portfolio.state import MEASURED_MIN, SearchState
from crosswind.models.tuner.search.scale import censored, relative_to_sources
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.search.tuner import OWN, check_count
from crosswind.models.tuner.search.validity import expected_success
from crosswind.models.tuner.space.space import Space

DESIGNED = 2000  # configurations of which the start without sources is made
ROWS_MAX = 300  # measurements that the processes learn from: the cost grows with the cube
CENSORED_MAX = 100


class PortfolioTuner:
    """Several models in turn, the sources' as long as they rank the target's measurements well.

    Models: the sources' best rows, a process around a weighted sum of the sources' expectations, trees over sources and
    target, a ranking-weighted ensemble of processes, and the target's own process, trees and densities. Every score is
    multiplied by the expected success. Pending trials and suggestions before count as measured at expected values.
    Nothing invalid, measured or pending is suggested.

    Args:
        space: The configurations to choose from.
        seed: Of the start, the candidates and the models.
        sources: Measurements of other studies; those that have too few of the space's parameters are left out.
        features: Describe the target as the sources' features describe them.

    Example:
        >>> source = Source("last month", configurations, objectives, {"nodes": 8})
        >>> tuner = PortfolioTuner(space, 0, [source], features={"nodes": 16})
        >>> [configuration] = tuner.suggest(1)
        >>> tuner.observe([Trial(configuration, TrialState.DONE, objective=0.25)])
    """

    name: ClassVar[str] = "portfolio"

    def __init__(
        self,
        space: Space,
        seed: int,
        sources: Sequence[Source] = (),
        *,
        features: Mapping[str, float | str] | None = None,
    ) -> None:
        self._space, self._seed = space, seed
        self._trials = ObservedTrials(space)
        numbers = feature_numbers([features or {}, *(source.features for source in sources)])
        self._features = numbers[0]
        self._shares: Floats | None = None  # by the trials so far: most of what they cost is the process
        with one_thread():
            fitted = [FittedSource.of(space, source, row) for source, row in zip(sources, numbers[1:], strict=True)]
            self._sources = [source for source in fitted if source]
            self._start = self._designed()
            self._supply = self._made_supply(sources)

    def suggest(self, count: int) -> list[Configuration]:
        """Return the next configurations to try. Raises: InvalidInputError."""
        check_count(count)
        chosen: list[Configuration] = []
        with one_thread():
            while len(chosen) < count and (configuration := self._next(chosen)) is not None:
                chosen.append(configuration)
        return chosen

    def observe(self, trials: Sequence[Trial]) -> None:
        """Learn the newest state of these trials. Raises: InvalidInputError."""
        self._trials.add(trials)
        if trials:
            self._shares = None

    def weights(self) -> Mapping[str, float]:
        """Return the trust in each source and, last, in the study's own model; empty without sources.

        Sources of one name count together.
        """
        if not self._sources:
            return {}
        if self._shares is None:
            nothing = Candidates.none(self._sources[0].X.shape[1], len(self._sources))
            with one_thread():
                self._shares = self._state(nothing, [], len(self._trials.taken)).shares
        shares: list[float] = self._shares.tolist()
        weights: dict[str, float] = {}
        for source, share in zip(self._sources, shares, strict=False):
            weights[source.name] = weights.get(source.name, 0.0) + share
        return weights | {OWN: shares[-1]}

    def _next(self, chosen: Sequence[Configuration]) -> Configuration | None:
        """Return the best free configuration besides the chosen ones; None where nothing is left."""
        taken = self._trials.taken_with(chosen)
        for designed in [] if self._sources else self._start:
            if len(taken) < START and self._space.key(designed) not in taken:
                return designed
        done, objectives = self._trials.done
        order = np.argsort(objectives, kind="stable")[:TOPS]
        candidates = self._supply.free(taken, [done[place] for place in order], self._seed + len(taken))
        if not candidates.configurations:
            return None
        state = self._state(candidates, chosen, len(taken))
        if not chosen:
            self._shares = state.shares
        for arm in turn(state.shares, state.n_trials):
            scores = arm.scores(state) * state.chance
            if scores.max() > 0:
                return candidates.configurations[int(np.argmax(scores))]
        return candidates.configurations[int(np.random.default_rng(state.seed).integers(len(state.chance)))]

    def _state(self, candidates: Candidates, chosen: Sequence[Configuration], n_trials: int) -> SearchState:
        done, objectives = self._trials.done
        rows = best_and_spread(np.array(objectives), ROWS_MAX)
        measured = self._points([done[row] for row in rows])
        expected = expectations(self._sources, measured)[0]
        spread = float(np.median([source.spread for source in self._sources])) if self._sources else 0.0
        y = relative_to_sources(np.array([objectives[row] for row in rows]), expected, spread)
        stopped, values = self._stopped(float(y.max()) if len(y) else 0.0)
        X, observed = np.vstack([measured, stopped]), np.concatenate([y, values])
        process = Process.fitted(X, observed) if len(y) >= MEASURED_MIN else None
        pending = self._points([*self._trials.pending, *chosen])
        invalid = self._points(self._trials.invalid)
        points_of_sources = [(source.X, source.failed) for source in self._sources]
        chance = expected_success(candidates.points, measured, invalid, points_of_sources)
        if n_trials == 0:
            chance = np.where(self._has_failed(candidates.points), 0.0, chance)
        return SearchState(
            candidates=candidates,
            chance=chance,
            X=np.vstack([X, pending]),
            y=np.concatenate([observed, self._expected(pending, y, process)]),
            n_measured=len(y),
            process=process.believing(pending) if process else None,
            expected=np.hstack([expected, expectations(self._sources, np.vstack([stopped, pending]))[0]]),
            used=np.vstack([X, pending, invalid]),
            sources=self._sources,
            features=self._features,
            designed=self._points(self._start),
            n_trials=n_trials,
            seed=self._seed + n_trials,
        )

    def _has_failed(self, points: Floats) -> NDArray[np.bool_]:
        """Return which points failed in a source, shape (n,)."""
        failed = {tuple(point) for source in self._sources for point in source.failed.tolist()}
        return np.array([tuple(point) in failed for point in points.tolist()], dtype=bool)

    def _stopped(self, worst: float) -> tuple[Floats, Floats]:
        """Return the points of trials that were stopped early, and the values that these are taken for."""
        stopped = self._points(self._trials.pruned[-CENSORED_MAX:])
        return stopped, censored(np.full(len(stopped), worst))

    def _expected(self, pending: Floats, y: Floats, process: Process | None) -> Floats:
        """Return the expected values of points without a measurement."""
        if len(pending) == 0:
            return np.empty(0)
        if process:
            return process.predict(pending)[0]
        if self._sources:
            return np.asarray(expectations(self._sources, pending)[0].mean(axis=0))
        return np.full(len(pending), float(y.mean()) if len(y) else 0.0)

    def _points(self, configurations: Sequence[Configuration]) -> Floats:
        return self._space.coordinates(configurations)

    def _made_supply(self, sources: Sequence[Source]) -> Supply:
        if self._space.is_enumerable:
            return ListedSupply(self._space, self._sources, self._points(self._start))
        tops = [configuration for source in sources for configuration in source.best(TOP_ROWS)]
        return DrawnSupply(self._space, self._sources, [*self._start, *tops])

    def _designed(self) -> list[Configuration]:
        """Return a start that represents the whole space."""
        return representative(Pool.of(self._space, self._space.random(DESIGNED, self._seed)), self._seed)
