"""`from crosswind.raytune import CrosswindSearch`: Ray Tune's experiments that start from what was measured before."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, SupportsFloat

try:
    from ray.tune import ExperimentAnalysis, ResultGrid
    from ray.tune.search import Searcher
except ImportError as error:
    raise ImportError("crosswind.raytune needs Ray Tune: pip install 'crosswind[ray]'") from error

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import MAXIMISE, Study, Trial, TrialRecord, TrialState
from crosswind.models.tuner.search.search import PriorStudies, search_for
from crosswind.models.tuner.search.search_cache import SearchCache
from crosswind.models.tuner.search.source import Source
from crosswind.samplers.given_sources import Place, bounded, source_of
from crosswind.samplers.ray_space import RaySpace, ray_space

STUDY = "ray"


class CrosswindSearch(Searcher):  # type: ignore[misc]
    """Suggests by Crosswind's search: with sources its portfolio, without them a Gaussian process.

    The last value of the metric counts, also of a trial that a scheduler stopped. A trial that ended with an error
    counts as a configuration that cannot run. When the space is used up, so is the search.

    Args:
        space: The search space; by default the `param_space` of the Tuner.
        metric: What is measured; by default that of the TuneConfig.
        mode: `min` or `max`; by default that of the TuneConfig.
        sources: What was measured before, the nearest first: names of Crosswind's studies, results of Ray
            (`ResultGrid` or `ExperimentAnalysis`), or `Source`s, in which lower is better (negate what is maximised).
        points_to_evaluate: Configurations to try first.
        seed: Of everything random.
        server: URL of the server that has the named studies; by default $CROSSWIND_SERVER.
        folder: Shared folder that has them; by default $CROSSWIND_TUNE_FOLDER, else the store of this machine.

    Raises:
        InvalidInputError: For several metrics, and a space that cannot be searched.

    Example:
        >>> search = CrosswindSearch(sources=["resnet-4-nodes"])
        >>> config = tune.TuneConfig(metric="loss", mode="min", search_alg=search, num_samples=20)
        >>> tune.Tuner(train, param_space=space, tune_config=config).fit()
    """

    def __init__(  # noqa: PLR0913 - as Ray's own searchers have them
        self,
        space: Mapping[str, Any] | None = None,
        metric: str | None = None,
        mode: str | None = None,
        *,
        sources: "Sequence[str | Source | ResultGrid | ExperimentAnalysis]" = (),
        points_to_evaluate: Sequence[Mapping[str, Any]] = (),
        seed: int = 0,
        server: str | None = None,
        folder: Path | str | None = None,
    ) -> None:
        _check_single(metric, mode)
        super().__init__(metric=metric, mode=mode)
        self._metric: str | None = metric
        self._mode: str | None = mode
        self._space: RaySpace | None = ray_space(space) if space else None
        self._given = [_given(source) for source in (sources if isinstance(sources, list | tuple) else (sources,))]
        self._points = [dict(point) for point in points_to_evaluate]
        self._place = Place(server, folder)
        self._seed = seed
        self._records: dict[str, TrialRecord] = {}
        self._prior: PriorStudies | None = None
        self._start()

    def __getstate__(self) -> dict[str, Any]:
        """Return what is to be kept; the search is made again from the trials."""
        return {name: value for name, value in self.__dict__.items() if name != "_cache"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def set_search_properties(
        self,
        metric: str | None,
        mode: str | None,
        config: Mapping[str, Any],
        **spec: Any,  # noqa: ARG002 - as Ray calls it
    ) -> bool:
        """Take the Tuner's space, metric and mode; False where there is another space already, or none in `config`.

        Raises: InvalidInputError as the class.
        """
        _check_single(metric, mode)
        given = ray_space(config)
        if not given.parameters or self._space not in (None, given):
            return False
        self._space, self._metric, self._mode = given, metric or self._metric, mode or self._mode
        return True

    def suggest(self, trial_id: str) -> dict[str, Any] | str:
        """Return the next configuration, or FINISHED when the space is used up.

        Raises: InvalidInputError without space, metric and mode; InvalidInputError, NotFoundError, UnavailableError for
        sources that cannot be used.
        """
        space, study = self._ready()
        if self._points:
            configuration = space.checked(self._points.pop(0))
        else:
            self._read_sources(space)
            suggested = self._cache.get(study).suggest(list(self._records.values()), 1)
            if not suggested:
                finished: str = Searcher.FINISHED
                return finished
            # Rounded to a step as Ray has it, so that the search learns what is run.
            configuration = space.checked(space.outward(suggested[0]))
        self._keep(trial_id, Trial(configuration, TrialState.LEASED, None, trial_id))
        return space.outward(configuration)

    def on_trial_complete(self, trial_id: str, result: Mapping[str, Any] | None = None, error: bool = False) -> None:
        """Learn the last value of the metric; without a finite one the trial failed, or was stopped."""
        if trial_id in self._records:
            trial = self._records[trial_id].trial
            self._keep(
                trial_id, self._ended(trial, (result or {}).get(str(self._metric)), error=error, pruned=not error)
            )

    def add_evaluated_point(  # noqa: PLR0917 - as Ray calls it
        self,
        parameters: Mapping[str, Any],
        value: float,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: Sequence[float] | None = None,  # noqa: ARG002 - as Ray calls it
    ) -> None:
        """Learn what was measured elsewhere in the same space. Raises: InvalidInputError for another space."""
        space, _ = self._ready()
        trial_id = f"evaluated-{len(self._records)}"
        trial = Trial(space.checked(parameters), trial_id=trial_id)
        self._keep(trial_id, self._ended(trial, None if pruned else value, error=error, pruned=pruned))

    def get_state(self) -> dict[str, Any]:
        """Return the trials and the points that are still to be tried, as JSON values."""
        return {"trials": [record.as_json() for record in self._records.values()], "points": self._points}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take what `get_state` returned."""
        records = [TrialRecord.from_json(fields) for fields in state["trials"]]
        self._records = {record.trial_id: record for record in records}
        self._points = [dict(point) for point in state["points"]]
        self._start()

    def save(self, checkpoint_path: str) -> None:
        """Write the state to a file."""
        Path(checkpoint_path).write_text(json.dumps(self.get_state()), encoding="utf-8")

    def restore(self, checkpoint_path: str) -> None:
        """Read the state that `save` wrote; space and sources are those of this search. Raises: InvalidInputError."""
        try:
            self.set_state(json.loads(Path(checkpoint_path).read_text(encoding="utf-8")))
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInputError(
                f"{checkpoint_path}: {error!r:.100}; expected what CrosswindSearch.save wrote"
            ) from error

    def _start(self) -> None:
        self._cache = SearchCache(search_for, lambda _: self._prior or PriorStudies())

    def _ready(self) -> tuple[RaySpace, Study]:
        """Return the space and the study. Raises: InvalidInputError for what is missing."""
        missing = {"space": self._space, "metric": self._metric, "mode": self._mode}
        for name, value in missing.items():
            if not value:
                raise InvalidInputError(f"CrosswindSearch has no {name}, expected one here or in the Tuner")
        assert self._space is not None  # noqa: S101 - for the type
        direction = MAXIMISE if self._mode == "max" else None
        space = self._space.space.as_json()
        return self._space, Study(STUDY, STUDY, space, str(self._metric), "", self._seed, 0, direction=direction)

    def _keep(self, trial_id: str, trial: Trial) -> None:
        self._records[trial_id] = TrialRecord(trial, STUDY)

    def _ended(self, trial: Trial, value: object, *, error: bool, pruned: bool) -> Trial:
        number = math.nan if error or isinstance(value, bool) or not isinstance(value, SupportsFloat) else float(value)
        if math.isfinite(number):
            signed = -number if self._mode == "max" else number
            return replace(trial, state=TrialState.DONE, objective=signed)
        return replace(trial, state=TrialState.PRUNED if pruned and value is None else TrialState.FAILED)

    def _read_sources(self, space: RaySpace) -> None:
        """Read the sources when they are first needed."""
        if self._prior is None:
            sources = chain.from_iterable(self._read(given, space) for given in self._given)
            self._prior = PriorStudies(bounded(sources))

    def _read(self, given: "str | Source | _Measured", space: RaySpace) -> list[Source]:
        if isinstance(given, Source):
            return [given]
        if isinstance(given, str):
            return self._place.sources([given], is_maximised=self._mode == "max")
        trials = [
            self._ended(Trial(space.inward(config)), result.get(str(self._metric)), error=error, pruned=not error)
            for config, result, error in given.rows
        ]
        return [source_of("results of Ray", trials)]


@dataclass(frozen=True)
class _Measured:
    """The results of an experiment: configuration, last result, and whether it ended with an error."""

    rows: tuple[tuple[Mapping[str, Any], Mapping[str, Any], bool], ...]


def _given(source: object) -> "str | Source | _Measured":
    """Return a source in a form that can be kept. Raises: InvalidInputError for what is none."""
    if isinstance(source, str | Source):
        return source
    analysis = source._experiment_analysis if isinstance(source, ResultGrid) else source
    if not isinstance(analysis, ExperimentAnalysis):
        raise InvalidInputError(
            f"source {source!r:.80}, expected a name, a Source, a ResultGrid or an ExperimentAnalysis"
        )
    rows = ((dict(trial.config), dict(trial.last_result or {}), trial.status == "ERROR") for trial in analysis.trials)
    return _Measured(tuple(rows))


def _check_single(metric: object, mode: object) -> None:
    """Refuse several objectives, and modes that are none. Raises: InvalidInputError."""
    if not isinstance(metric, str | None):
        raise InvalidInputError(f"metric is {metric!r:.80}, expected one name")
    if mode not in (None, "min", "max"):
        raise InvalidInputError(f"mode is {mode!r:.80}, expected 'min' or 'max'")
