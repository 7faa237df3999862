"""The charts of a study and the importance of its parameters, from its trials."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from crosswind.dashboards.figures.parameters import (
    POINTS,
    ContourPlot,
    ImportancePlot,
    Measured,
    ParallelPlot,
    SlicePlot,
    importance_plot,
)
from crosswind.dashboards.figures.trials import TrialValues, complete_trials, trial_values
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.trial import Parameter, Study, TrialRecord
from crosswind.models.tuner.evidence.importance import Effects
from crosswind.models.tuner.search.growing import fitting, space_of
from crosswind.models.tuner.space.parameter import RangeDomain
from crosswind.models.tuner.space.space import Space

GRID = 25  # values of a parameter without a list of its own


class StudyCharts:
    """The charts of a study with these trials, the best `points` of them drawn.

    Raises: NotFoundError without a trial that has a value.
    """

    def __init__(self, study: Study, records: Sequence[TrialRecord], *, points: int = POINTS) -> None:
        self._study, self._records, self._points = study, records, points
        self._numbered = [
            (number, record) for number, record in enumerate(records, 1) if record.trial.objective is not None
        ]
        if not self._numbered:
            raise NotFoundError(f"study {study.name!r} has no trial with a value yet")
        self._space = space_of(study, records) if study.define_by_run else Space.from_json(study.space)

    def importances(self) -> Mapping[str, float]:
        """Return the share of each parameter alone in the variation of the objective, largest first."""
        return self._effects().importances()

    def importance(self) -> ImportancePlot:
        """Return the shares as bars."""
        return importance_plot(self._study.objective, self.importances(), len(self._numbered))

    def history(self) -> TrialValues:
        """Return the values in the order of the trials, and the best so far."""
        values = trial_values(self._study, self._records, self._study.unit)
        assert values is not None  # noqa: S101 - there is a trial with a value
        return values

    def slices(self, parameters: Sequence[str]) -> SlicePlot:
        """Return the values along these parameters, by default all."""
        return SlicePlot(self._measured, self._named(parameters))

    def parallel(self, parameters: Sequence[str]) -> ParallelPlot:
        """Return the trials as lines through these parameters, by default all."""
        return ParallelPlot(self._measured, self._named(parameters))

    def contour(self, parameters: Sequence[str]) -> ContourPlot:
        """Return the objective over two parameters, by default the two most important."""
        pair = self._named(parameters or tuple(self.importances())[:2])
        if len(set(pair)) != 2:
            raise InvalidInputError(f"the figure is over {' and '.join(pair)}, expected two different parameters")
        first, second = pair
        along, up = self._grid(first), self._grid(second)
        pairs = [{first: value, second: other} for other in up for value in along]
        predicted = self._effects().surface(first, second, pairs).reshape(len(up), len(along))
        sign = -1.0 if self._study.is_maximised else 1.0
        surface = tuple(tuple(row) for row in (sign * predicted).tolist())
        return ContourPlot(self._measured, (first, second), along, up, surface)

    def _effects(self) -> Effects:
        done = [record for _, record in self._numbered]
        if self._study.define_by_run:
            done = [whole for record in done if (whole := fitting(self._space, record))]
        configurations = [record.trial.configuration for record in done]
        objectives = [record.trial.objective for record in done if record.trial.objective is not None]
        return Effects.of(self._space, configurations, objectives, seed=self._study.seed)

    @cached_property
    def _measured(self) -> Measured:
        study, values = self._study, complete_trials(self._study, self._records)
        domains = self._space.domains.items()
        logarithmic = frozenset(name for name, domain in domains if isinstance(domain, RangeDomain) and domain.log)
        return Measured(study.objective, study.unit, study.is_maximised, values, logarithmic, self._points)

    def _named(self, parameters: Sequence[str]) -> tuple[str, ...]:
        unknown = [name for name in parameters if name not in self._space.domains]
        if unknown:
            raise InvalidInputError(f"parameter {unknown[0]} is unknown, expected {', '.join(self._space.domains)}")
        return tuple(parameters) or tuple(self._space.domains)

    def _grid(self, name: str) -> tuple[Parameter, ...]:
        domain = self._space.domains[name]
        if (values := domain.values()) is not None and len(values) <= GRID:
            return values
        low, high = (float(getattr(domain, end)) for end in ("low", "high"))
        steps = [place / (GRID - 1) for place in range(GRID)]
        if isinstance(domain, RangeDomain) and domain.log:
            return tuple(low * (high / low) ** step for step in steps)
        return tuple(low + (high - low) * step for step in steps)
