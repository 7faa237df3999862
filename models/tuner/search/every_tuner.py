"""Every tuner of ours and of libraries, by the name that people choose it by; a module loads only here."""

from crosswind.models.tuner.search.gaussian_process_tuner import GaussianProcessTuner
from crosswind.models.tuner.search.grid_tuner import GridTuner
from crosswind.models.tuner.search.optuna_tuners import CmaTuner, TpeTuner
from crosswind.models.tuner.search.portfolio.tuner import PortfolioTuner
from crosswind.models.tuner.search.random_tuner import RandomTuner

MadeTuner = (
    type[PortfolioTuner]
    | type[GaussianProcessTuner]
    | type[TpeTuner]
    | type[CmaTuner]
    | type[RandomTuner]
    | type[GridTuner]
)
BY_NAME: dict[str, MadeTuner] = {
    "portfolio": PortfolioTuner,
    "gp": GaussianProcessTuner,
    "tpe": TpeTuner,
    "cma": CmaTuner,
    "random": RandomTuner,
    "grid": GridTuner,
}
TUNERS: tuple[MadeTuner, ...] = tuple(BY_NAME.values())
