"""Tuners: which configuration to try next.

Names are loaded when they are asked for: who only tells an outcome does not wait for scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crosswind.models.tuner.every_tuner import TUNERS
    from crosswind.models.tuner.gaussian_process_tuner import GaussianProcessTuner
    from crosswind.models.tuner.portfolio.tuner import PortfolioTuner
    from crosswind.models.tuner.random_tuner import RandomTuner
    from crosswind.models.tuner.source import Source
    from crosswind.models.tuner.space import Space
    from crosswind.models.tuner.tuner import Tuner

__all__ = ["TUNERS", "GaussianProcessTuner", "PortfolioTuner", "RandomTuner", "Source", "Space", "Tuner"]

_MODULES = {
    "TUNERS": "every_tuner",
    "GaussianProcessTuner": "gaussian_process_tuner",
    "PortfolioTuner": "portfolio.tuner",
    "RandomTuner": "random_tuner",
    "Source": "source",
    "Space": "space",
    "Tuner": "tuner",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
