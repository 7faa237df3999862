"""Backtest of the candidates for the weather: predictions of past runs from what was known before each."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.forecast.observations import Lagged, Observations, Targets, targets_of
from crosswind.models.forecast.sequence import Recurrent, has_torch
from crosswind.models.forecast.weather_models import Climate, LaggedTrees, LocalLevel, WeatherModel
from crosswind.models.scores import mean_pinball
from crosswind.models.surrogate.surrogate import LEVELS

RUNS_MIN = 40
NETWORK_RUNS_MIN = 1000
BLOCKS = 4
TESTED_SHARE = 0.5  # of the runs, the newest
NETWORK_LOSS_MAX = 0.98  # of the best light candidate's loss, above which the network is not taken


@dataclass(frozen=True)
class Score:
    """A candidate's mean pinball loss of the logarithm in the backtest, and skill over the climate, by horizon too."""

    name: str
    loss: float
    skill: float
    coverage_90: float
    skill_by_horizon: tuple[float, ...]


@dataclass(frozen=True)
class Backtest:
    """Scores of all candidates, and the errors of the chosen one."""

    chosen: str
    scores: tuple[Score, ...]
    n_targets: int
    errors: Floats  # (n_horizons, n_asked, n_levels): log ratio less quantile, of the chosen

    def score(self, name: str) -> Score:
        """The score of one candidate."""
        return next(score for score in self.scores if score.name == name)


def candidates(seed: int, n_runs: int) -> list[WeatherModel]:
    """Make the candidates; the network only where torch is installed and there are enough runs to learn from."""
    light: list[WeatherModel] = [Climate(), LocalLevel(), LaggedTrees(seed)]
    return [*light, Recurrent(seed)] if n_runs >= NETWORK_RUNS_MIN and has_torch() else light


def backtest(
    runs: Observations, lagged: Lagged, horizons_hours: tuple[float, ...], models: Sequence[WeatherModel]
) -> Backtest:
    """Test the models on the newest half of the runs, in BLOCKS blocks of time, each predicted from all runs before it.

    Within a block the runs before each target's cutoff are known, though not learned from. Raises:
    InvalidInputError with fewer than RUNS_MIN runs, and without the climate to compare with.
    """
    if len(runs) < RUNS_MIN:
        raise InvalidInputError(f"{len(runs)} runs to test the weather on, expected at least {RUNS_MIN}")
    names = [model.name for model in models]
    if Climate.name not in names or len(set(names)) < len(names):
        raise InvalidInputError(f"candidates are {', '.join(names)}, expected {Climate.name} and others, each once")
    bounds = np.linspace(round(len(runs) * (1 - TESTED_SHARE)), len(runs), BLOCKS + 1).astype(int)
    answers: dict[str, list[Floats]] = {model.name: [] for model in models}
    truths = []
    for first, end in pairwise(bounds):
        past, targets, y = _block(runs, int(first), int(end), horizons_hours)
        truths.append(y.reshape(len(horizons_hours), -1))
        for model in models:
            predicted = model.fit(past, lagged, horizons_hours).predict(runs, targets)
            answers[model.name].append(predicted.reshape(len(horizons_hours), -1, predicted.shape[1]))
    truth = np.concatenate(truths, axis=1)
    whole = {name: np.concatenate(blocks, axis=1) for name, blocks in answers.items()}
    scores = tuple(_score(name, predicted, whole[Climate.name], truth) for name, predicted in whole.items())
    chosen = _chosen(scores)
    return Backtest(chosen, scores, truth.shape[1], truth[:, :, None] - whole[chosen])


def _block(
    runs: Observations, first: int, end: int, horizons_hours: tuple[float, ...]
) -> tuple[Observations, Targets, Floats]:
    targets, y = targets_of(runs.first(end).newest(end - first), horizons_hours)
    return runs.first(first), targets, y


def _score(name: str, predicted: Floats, climate: Floats, truth: Floats) -> Score:
    losses = [mean_pinball(of_horizon, y, LEVELS) for of_horizon, y in zip(predicted, truth, strict=True)]
    naive = [mean_pinball(of_horizon, y, LEVELS) for of_horizon, y in zip(climate, truth, strict=True)]
    by_horizon = tuple(1 - ours / max(theirs, 1e-12) for ours, theirs in zip(losses, naive, strict=True))
    covered = float(np.mean((predicted[:, :, 0] <= truth) & (truth <= predicted[:, :, -2])))  # 0.05 to 0.95
    return Score(
        name,
        float(np.mean(losses)),
        1 - float(np.mean(losses)) / max(float(np.mean(naive)), 1e-12),
        covered,
        by_horizon,
    )


def _chosen(scores: Sequence[Score]) -> str:
    """Return the candidate of least loss; the network only where it clearly beats all that need no torch."""
    light = min((score for score in scores if score.name != Recurrent.name), key=lambda score: score.loss)
    heavy = [score for score in scores if score.name == Recurrent.name]
    return heavy[0].name if heavy and heavy[0].loss < NETWORK_LOSS_MAX * light.loss else light.name
