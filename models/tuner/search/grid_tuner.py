"""Grid search: every configuration once, or of endless ranges those at a few levels, in random order."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration, Parameter, Trial, is_wrapped
from crosswind.models.tuner.search.observed_trials import ObservedTrials
from crosswind.models.tuner.search.tuner import check_count
from crosswind.models.tuner.space.parameter import ENUMERATED_MAX, Domain, FloatDomain, IntDomain
from crosswind.models.tuner.space.space import Space

LEVELS = 5  # of a range: both ends, and equal steps between, in factors where it is logarithmic


class GridTuner:
    """Suggests the points of a grid in random order; nothing once all are measured.

    Ranges of real numbers have LEVELS levels; where there are too many configurations nevertheless, so have those of
    whole numbers.

    Args:
        space: The configurations to choose from.
        seed: Of the order.
    """

    name: ClassVar[str] = "grid"

    def __init__(self, space: Space, seed: int) -> None:
        self._space, self._seed = space, seed
        self._trials = ObservedTrials(space)

    def suggest(self, count: int) -> list[Configuration]:
        """Return the next points of the grid. Raises: InvalidInputError, also where the grid is too large."""
        check_count(count)
        return self._trials.free(self._grid)[:count]

    def observe(self, trials: Sequence[Trial]) -> None:
        """Learn which configurations are taken. Raises: InvalidInputError."""
        self._trials.add(trials)

    @cached_property
    def _grid(self) -> list[Configuration]:
        grids = (self._space, _coarse(self._space, FloatDomain), _coarse(self._space, FloatDomain | IntDomain))
        grid = next((grid for grid in grids if grid.is_enumerable), None)
        if grid is None:
            raise InvalidInputError(
                f"search is 'grid', and the grid has {grids[-1].size:.6g} configurations, "
                f"expected at most {ENUMERATED_MAX}: list fewer values, or choose another search"
            )
        points = grid.configurations()
        return [points[place] for place in np.random.default_rng(self._seed).permutation(len(points))]


def _coarse(space: Space, kinds: object) -> Space:
    """Return the space with a few levels in place of ranges of these kinds."""
    document = space.as_json()
    parameters = document["parameters"] if is_wrapped(document) else document
    assert isinstance(parameters, Mapping)  # noqa: S101 - as spaces write it
    coarse = {
        name: _listed(parameters[name], domain) if isinstance(domain, kinds) else parameters[name]  # type: ignore[arg-type]
        for name, domain in space.domains.items()
    }
    return Space.from_json({**document, "parameters": coarse} if is_wrapped(document) else coarse)


def _listed(definition: Mapping[str, object], domain: Domain) -> dict[str, object]:
    kept = {name: definition[name] for name in ("when", "description") if name in definition}
    return {"kind": "ordinal", "values": _levels(domain), **kept}


def _levels(domain: Domain) -> list[Parameter]:
    assert isinstance(domain, FloatDomain | IntDomain)  # noqa: S101
    even = np.geomspace if domain.log else np.linspace
    numbers = even(domain.low, domain.high, LEVELS).tolist()
    if isinstance(domain, FloatDomain):
        return list(dict.fromkeys(min(max(number, domain.low), domain.high) for number in numbers))
    steps = (round((number - domain.low) / domain.step) for number in numbers)
    most = (domain.high - domain.low) // domain.step
    return list(dict.fromkeys(domain.low + domain.step * min(step, most) for step in steps))
