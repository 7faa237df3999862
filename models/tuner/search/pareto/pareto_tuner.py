"""Bayesian optimisation of several objectives at once, with limits on the outcomes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Configuration, Trial, TrialState
from crosswind.models.gp.one_thread import one_thread
from crosswind.models.tuner.search.design import START, representative
from crosswind.models.tuner.search.observed_trials import ObservedTrials
from crosswind.models.tuner.search.pareto.surfaces import FEASIBLE, Surfaces
from crosswind.models.tuner.search.pool import Pool
from crosswind.models.tuner.search.tuner import check_count
from crosswind.models.tuner.search.validity import chance_of_success
from crosswind.models.tuner.space.space import Space
from crosswind.models.tuner.study.front import on_front
from crosswind.models.tuner.study.goal import Goal, Judgement

JUDGED_MIN = 2
JUDGED_MAX = 200  # newest configurations that are learned from; the cost is the cube of it
CANDIDATES = 2000  # of a larger space, drawn again after every trial, besides the neighbours of the front
NEIGHBOURS = 8  # draws a parameter around each configuration on the front
LEADERS = 8
FOREIGN = 3  # of the START first trials at most are from sources: the best there may break a limit here
DRAWS = 240


@dataclass(frozen=True)
class FrontMember:
    """A measured configuration that may be on the front.

    Args:
        configuration: Its parameters.
        objectives: Without noise, in the outcomes' own units (a maximised one is not negated).
        chance: Probability that no other measured configuration within the limits beats it in all objectives.
        chance_within: Probability that it keeps the limits itself.
    """

    configuration: Configuration
    objectives: tuple[float, ...]
    chance: float
    chance_within: float


class ParetoTuner:
    """Expected growth of the volume that the front dominates, times the chances to keep the limits and to run at all.

    Each objective and limit is a process of its own, on the logarithm's scale where its sign never changes; repeats of
    a configuration give the noise. Pending trials and suggestions before count as measured at their expected values.
    With one objective it is expected improvement under limits.

    Args:
        space: The configurations to choose from.
        seed: Of the start and the candidates.
        objectives: As `Objective.parse` reads them, such as `maximise samples / run_seconds`.
        limits: As `Limit.parse` reads them, such as `power_watts <= 300`.
        first: Configurations that were good elsewhere, best first: up to FOREIGN of them are tried first.

    Example:
        >>> tuner = ParetoTuner(space, 0, ["run_seconds", "energy_joules"], ["power_watts <= 300"])
        >>> trial = Trial(tuner.suggest(1)[0], TrialState.DONE, 12.0, "t1")
        >>> tuner.observe([trial], {"t1": {"run_seconds": 12.0, "energy_joules": 3e3, "power_watts": 250.0}})
    """

    name: ClassVar[str] = "pareto"

    def __init__(
        self,
        space: Space,
        seed: int,
        objectives: Sequence[str],
        limits: Sequence[str] = (),
        *,
        first: Sequence[Configuration] = (),
    ) -> None:
        self.goal = Goal.parse(objectives, limits)
        self._space, self._seed = space, seed
        self._trials = ObservedTrials(space)
        self._judged: dict[str, tuple[Configuration, Judgement]] = {}
        is_small = space.is_enumerable and space.size <= CANDIDATES
        self._everything = Pool.of(space, space.configurations()) if is_small else None
        design = representative(self._everything or Pool.of(space, space.random(CANDIDATES, seed)), seed)
        self._start = list(
            {space.key(configuration): configuration for configuration in [*first[:FOREIGN], *design]}.values()
        )[:START]

    def suggest(self, count: int) -> list[Configuration]:
        """Return the next configurations to try. Raises: InvalidInputError."""
        check_count(count)
        chosen = self._trials.left_of_start(self._start, count)
        return [*chosen, *self._improving(count - len(chosen), chosen)]

    def observe(self, trials: Sequence[Trial], outcomes: Mapping[str, Mapping[str, float]] | None = None) -> None:
        """Learn the newest state of these trials, all or none; `outcomes` has those of complete ones by trial id.

        A complete trial without outcomes is only not suggested again.
        Raises: InvalidInputError where outcomes do not suffice for the goal.
        """
        outcomes_by_id = outcomes or {}
        done = [trial for trial in trials if trial.state is TrialState.DONE and trial.trial_id in outcomes_by_id]
        self.learn(trials, {trial.trial_id: self._judge(trial, outcomes_by_id[trial.trial_id]) for trial in done})

    def learn(self, trials: Sequence[Trial], judged: Mapping[str, Judgement]) -> None:
        """Learn the same, with the judgements of complete trials by trial id. Raises: InvalidInputError."""
        self._trials.add(trials)
        judgements = {
            trial.trial_id: (trial.configuration, judged[trial.trial_id])
            for trial in trials
            if trial.trial_id in judged
        }
        self._judged.update(judgements)

    def front(self) -> list[FrontMember]:
        """Return the measured configurations on the front in the posterior mean, sorted by the first objective.

        Only those that probably keep the limits; empty before the first of them.
        """
        _, configurations, surfaces = self._surfaces()
        if surfaces is None:
            return []
        within = surfaces.chance_kept()
        means = np.stack([surface.process.at_measured()[0] for surface in surfaces.objectives], axis=1)
        feasible = np.flatnonzero(within >= FEASIBLE)
        chances = self._chances(surfaces, within)
        members = feasible[on_front(means[feasible])] if len(feasible) else feasible
        back = np.stack([surface.scale.back(means[:, i]) for i, surface in enumerate(surfaces.objectives)], axis=1)
        signs = np.array([-1.0 if objective.is_maximised else 1.0 for objective in self.goal.objectives])
        return [
            FrontMember(configurations[i], tuple((signs * back[i]).tolist()), float(chances[i]), float(within[i]))
            for i in members[np.argsort(means[members, 0], kind="stable")].tolist()
        ]

    def _judge(self, trial: Trial, outcomes: Mapping[str, float]) -> Judgement:
        try:
            return self.goal.judge(trial.configuration, outcomes)
        except InvalidInputError as error:
            raise InvalidInputError(f"trial {trial.trial_id}: {error}") from error

    def _improving(self, count: int, chosen: Sequence[Configuration]) -> list[Configuration]:
        if count == 0:
            return []
        free = self._candidates().without(self._trials.taken_with(chosen))
        with one_thread():
            points, _, surfaces = self._surfaces()
            if surfaces is None or len(points) < JUDGED_MIN or len(free) == 0:
                order = np.random.default_rng(self._seed).permutation(len(free))
                return [free.configurations[index] for index in order[:count]]
            stopped = self._trials.pruned[-JUDGED_MAX:]  # worse than expected; else they would be asked for again
            assumed = self._space.coordinates([*self._trials.pending, *stopped, *chosen])
            invalid = self._space.coordinates(self._trials.invalid[-JUDGED_MAX:])
            chance = chance_of_success(free.points, points, invalid)
            best = _picked(surfaces.believing(assumed), free.points, chance, count)
        return [free.configurations[index] for index in best]

    def _surfaces(self) -> tuple[Floats, list[Configuration], Surfaces | None]:
        """Return points (n, n_coordinates), configurations and models of the judged; no models before the first."""
        groups: dict[str, list[Judgement]] = {}
        first: dict[str, Configuration] = {}
        for configuration, judgement in self._judged.values():
            key = self._space.key(configuration)
            groups.setdefault(key, []).append(judgement)
            first.setdefault(key, configuration)
        newest = list(first)[-JUDGED_MAX:]
        configurations = [first[key] for key in newest]
        points = self._space.coordinates(configurations)
        surfaces = Surfaces.of(points, [groups[key] for key in newest]) if newest else None
        return points, configurations, surfaces

    def _chances(self, surfaces: Surfaces, within: Floats) -> Floats:
        """Return the share of draws in which each measured configuration is on the front, (n,)."""
        draws = [surface.process.draws(DRAWS, self._seed + i) for i, surface in enumerate(surfaces.objectives)]
        feasible = np.flatnonzero(within >= FEASIBLE)
        counts = np.zeros(len(within))
        for drawn in np.stack(draws, axis=2):
            counts[feasible] += on_front(drawn[feasible]) if len(feasible) else 0
        return counts / len(draws[0])

    def _leaders(self) -> list[Configuration]:
        """Return the newest configurations that are on the front as measured, within the limits."""
        judged = [pair for pair in self._judged.values() if pair[1].keeps_limits] or list(self._judged.values())
        if not judged:
            return []
        front = on_front(np.array([judgement.objectives for _, judgement in judged]))
        return [judged[index][0] for index in np.flatnonzero(front)[-LEADERS:].tolist()]

    def _candidates(self) -> Pool:
        """Return the configurations to choose from now."""
        seed = self._seed + 1 + len(self._trials.taken)  # other candidates after every trial
        if self._everything is not None:
            return self._everything
        leaders = self._leaders()
        near = [neighbour for leader in leaders for neighbour in self._space.neighbours(leader, NEIGHBOURS, seed)]
        return Pool.of(self._space, [*near, *self._space.random(CANDIDATES + len(self._trials.taken), seed)])


def _picked(surfaces: Surfaces, points: Floats, chance: Floats, count: int) -> list[int]:
    """Return the indices of the best points one after another, each believed before the next."""
    score = surfaces.score(points) * chance
    rows = np.argsort(-score, kind="stable")[: max(CANDIDATES, count)]
    picks = [int(rows[0])]
    while len(picks) < min(count, len(rows)):
        surfaces = surfaces.believing(points[picks[-1:]])
        score = surfaces.score(points[rows]) * chance[rows]
        score[np.isin(rows, picks)] = -np.inf
        picks.append(int(rows[np.argmax(score)]))
    return picks
