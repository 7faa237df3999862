"""The time of a step, a file for each parallel strategy."""

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.strategies.data_parallel import DataParallel
from crosswind.models.analytic.strategies.hybrid import Hybrid
from crosswind.models.analytic.strategies.offload import OffloadStrategy
from crosswind.models.analytic.strategies.parameter_server import ParameterServer
from crosswind.models.analytic.strategies.pipeline import PipelineParallel
from crosswind.models.analytic.strategies.strategy import Strategy
from crosswind.models.analytic.strategies.tensor import TensorParallel
from crosswind.models.analytic.strategies.zero import Zero

__all__ = ["STRATEGIES", "Strategy", "strategy_named"]

STRATEGIES: tuple[Strategy, ...] = (
    DataParallel(),
    Zero(),
    TensorParallel(),
    PipelineParallel(),
    Hybrid(),
    ParameterServer(),
    OffloadStrategy(),
)


def strategy_named(name: str) -> Strategy:
    """Return the strategy of a name. Raises: InvalidInputError."""
    for strategy in STRATEGIES:
        if strategy.name == name:
            return strategy
    raise InvalidInputError(f"strategy is {name!r}, expected one of {', '.join(choice.name for choice in STRATEGIES)}")
