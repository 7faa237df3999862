"""Every tuner of ours, made from a space and a seed."""

from crosswind.models.tuner.search.gaussian_process_tuner import GaussianProcessTuner
from crosswind.models.tuner.search.portfolio.tuner import PortfolioTuner
from crosswind.models.tuner.search.random_tuner import RandomTuner

TUNERS: tuple[type[PortfolioTuner] | type[GaussianProcessTuner] | type[RandomTuner], ...] = (
    PortfolioTuner,
    GaussianProcessTuner,
    RandomTuner,
)
