"""A portfolio of models that starts from what other studies measured."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Configuration, Trial
from crosswind.models.gp.gaussian_process import Process
from crosswind.models.tuner.search.gaussian_process_tuner import START, representative
from crosswind.models.tuner.search.knowledge import Knowledge
from crosswind.models.tuner.search.one_thread import one_thread
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
from crosswind.models.tuner.search.portfolio.evidence import MEASURED_MIN, Evidence
from crosswind.models.tuner.search.portfolio.prior import KnownSource, feature_numbers, telling
from crosswind.models.tuner.search.portfolio.rotation import turn
from crosswind.models.tuner.search.portfolio.scale import censored, standardised
from crosswind.models.tuner.search.portfolio.validity import chance_of_success
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.search.tuner import check_count
from crosswind.models.tuner.space.space import Space

DESIGNED = 2000  # configurations of which the start without sources is made
ROWS_MAX = 300  # measurements that the processes learn from: the cost grows with the cube
CENSORED_MAX = 100


class PortfolioTuner:
    """Asks several models in turn, the sources' as long as they rank the target's measurements well.

    Models: the sources' best rows, a process around a weighted sum of the sources' expectations, trees over sources and
    target, a ranking-weighted ensemble of processes, and the target's own process, trees and densities. Every score is
    weighed with the chance of being valid. Pending trials and the suggestions before count as measured at expected
    values. Nothing invalid, measured or pending is suggested. `features` describe the target as the sources' do theirs.
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
        self._knowledge = Knowledge(space)
        numbers = feature_numbers([features or {}, *(source.features for source in sources)])
        self._features = numbers[0]
        with one_thread():
            learned = [KnownSource.of(space, source, row) for source, row in zip(sources, numbers[1:], strict=True)]
            self._sources = [source for source in learned if source]
            self._supply = self._made_supply(sources)
        self._start = [] if self._sources else self._designed()

    def suggest(self, count: int) -> list[Configuration]:
        """The next configurations to try. Raises: InvalidInputError."""
        check_count(count)
        chosen: list[Configuration] = []
        with one_thread():
            while len(chosen) < count and (configuration := self._next(chosen)) is not None:
                chosen.append(configuration)
        return chosen

    def observe(self, trials: Sequence[Trial]) -> None:
        """Learns the newest state of these trials. Raises: InvalidInputError."""
        self._knowledge.add(trials)

    def _next(self, chosen: Sequence[Configuration]) -> Configuration | None:
        """The best free configuration beside the chosen ones; None where nothing is left."""
        taken = self._knowledge.taken | {self._space.key(configuration) for configuration in chosen}
        for designed in self._start:
            if len(taken) < START and self._space.key(designed) not in taken:
                return designed
        done, objectives = self._knowledge.done
        order = np.argsort(objectives, kind="stable")[:TOPS]
        candidates = self._supply.free(taken, [done[place] for place in order], self._seed + len(taken))
        if not candidates.configurations:
            return None
        evidence = self._evidence(candidates, chosen, len(taken))
        for arm in turn(evidence.shares, evidence.place):
            scores = arm.scores(evidence) * evidence.chance
            if scores.max() > 0:
                return candidates.configurations[int(np.argmax(scores))]
        return candidates.configurations[int(np.random.default_rng(evidence.seed).integers(len(evidence.chance)))]

    def _evidence(self, candidates: Candidates, chosen: Sequence[Configuration], place: int) -> Evidence:
        done, objectives = self._knowledge.done
        kept = telling(np.array(objectives), ROWS_MAX)
        measured = self._points([done[i] for i in kept])
        expected = expectations(self._sources, measured)[0]
        spread = float(np.median([source.spread for source in self._sources])) if self._sources else 0.0
        y = standardised(np.array([objectives[i] for i in kept]), expected, spread)
        stopped, values = self._stopped(float(y.max()) if len(y) else 0.0)
        X, observed = np.vstack([measured, stopped]), np.concatenate([y, values])
        process = Process.fitted(X, observed) if len(y) >= MEASURED_MIN else None
        pending = self._points([*self._knowledge.pending, *chosen])
        invalid = self._points(self._knowledge.invalid)
        return Evidence(
            candidates=candidates.points,
            beliefs=candidates.beliefs,
            doubts=candidates.doubts,
            chance=chance_of_success(candidates.points, measured, invalid, self._sources),
            X=np.vstack([X, pending]),
            y=np.concatenate([observed, self._expected(pending, y, process)]),
            n_measured=len(y),
            process=process.believing(pending) if process else None,
            expected=np.hstack([expected, expectations(self._sources, np.vstack([stopped, pending]))[0]]),
            gone=np.vstack([X, pending, invalid]),
            sources=self._sources,
            features=self._features,
            place=place,
            seed=self._seed + place,
        )

    def _stopped(self, worst: float) -> tuple[Floats, Floats]:
        """Points that were not measured to the end, and what they are taken to come to."""
        stopped = self._points(self._knowledge.pruned[-CENSORED_MAX:])
        return stopped, censored(np.full(len(stopped), worst))

    def _expected(self, pending: Floats, y: Floats, process: Process | None) -> Floats:
        """Return what points without a measurement are believed to come to."""
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
            return ListedSupply(self._space, self._sources)
        tops = [configuration for source in sources for configuration in source.best(TOP_ROWS)]
        return DrawnSupply(self._space, self._sources, tops)

    def _designed(self) -> list[Configuration]:
        """A start that stands for the whole space."""
        return representative(Pool.of(self._space, self._space.random(DESIGNED, self._seed)), self._seed)
