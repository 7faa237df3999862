"""Evidence within one run, without a cohort: a rank that others wait for, a change of its steps, its formulas."""

from dataclasses import dataclass, replace
from typing import Self

from crosswind.data.schema.answers.explanations import Interval
from crosswind.data.schema.run import Run
from crosswind.data.store.store import Store
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.within.change import Change, change_of
from crosswind.models.explain.within.formulas import by_formulas
from crosswind.models.explain.within.lag import Lag, lag_of, without_artefacts
from crosswind.models.stragglers.stages import stages_of


@dataclass(frozen=True)
class Within:
    """Evidence of a run by itself; each part is None where there is none. `formulas` are seconds a step."""

    lag: Lag | None = None
    change: Change | None = None
    formulas: Interval | None = None

    @classmethod
    def of(cls, segments: Segments | None) -> Self:
        """Return what its segments show."""
        if segments is None:
            return cls()
        lag = lag_of(segments)
        return cls(lag, change_of(without_artefacts(segments, lag)))

    @classmethod
    def of_run(cls, store: Store, run: Run, segments: Segments | None) -> Self:
        """Return the same with formulas; a pipeline's stages do different work, so that none of them lags.

        Raises: MalformedError.
        """
        own = replace(cls.of(segments), formulas=by_formulas(store, run))
        return replace(own, lag=None) if own.lag is not None and stages_of(store, run) else own
