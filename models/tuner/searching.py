"""The tuner that a desk asks where nobody names another."""

from crosswind.models.tuner.space import Space
from crosswind.models.tuner.tuner import Tuner


def searching(space: Space, seed: int) -> Tuner:
    """A Gaussian process over the space, loaded when the first trial is asked for."""
    from crosswind.models.tuner.gaussian_process_tuner import GaussianProcessTuner  # noqa: PLC0415 - a second

    return GaussianProcessTuner(space, seed)
