"""Every tuner of ours, made from a space and a seed."""

from crosswind.models.tuner.gaussian_process_tuner import GaussianProcessTuner
from crosswind.models.tuner.portfolio.tuner import PortfolioTuner
from crosswind.models.tuner.random_tuner import RandomTuner

TUNERS: tuple[type[PortfolioTuner] | type[GaussianProcessTuner] | type[RandomTuner], ...] = (
    PortfolioTuner,
    GaussianProcessTuner,
    RandomTuner,
)
