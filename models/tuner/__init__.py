"""Tuners: which configuration to try next."""

from crosswind.models.tuner.gaussian_process_tuner import GaussianProcessTuner
from crosswind.models.tuner.portfolio.tuner import PortfolioTuner
from crosswind.models.tuner.random_tuner import RandomTuner
from crosswind.models.tuner.source import Source
from crosswind.models.tuner.space import Space
from crosswind.models.tuner.tuner import Tuner

__all__ = ["TUNERS", "GaussianProcessTuner", "PortfolioTuner", "RandomTuner", "Source", "Space", "Tuner"]

# Every tuner of ours, made from a space and a seed.
TUNERS: tuple[type[PortfolioTuner] | type[GaussianProcessTuner] | type[RandomTuner], ...] = (
    PortfolioTuner,
    GaussianProcessTuner,
    RandomTuner,
)
