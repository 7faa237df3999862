"""`from crosswind.optuna import CrosswindSampler`: studies of Optuna that start from what was measured before."""

from collections.abc import Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

try:
    import optuna
    from optuna.samplers import BaseSampler, RandomSampler
except ImportError as error:
    raise ImportError("crosswind.optuna needs Optuna: pip install 'crosswind[optuna]'") from error

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration, Study
from crosswind.models.tuner.search.search import PriorStudies, search_for
from crosswind.models.tuner.search.search_cache import SearchCache
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.space.parameter import domain_from_json
from crosswind.samplers.given_sources import Place, bounded, check_direction, source_of
from crosswind.samplers.optuna_conditions import Distributions
from crosswind.samplers.optuna_trials import (
    SUGGESTED,
    SharedParameter,
    ShownStudy,
    is_maximised,
    trials_of,
)

CHOOSING_MAX = 16  # trials that choose at the same time; where there are more, some were abandoned while they chose
ROWS = 16  # of a source, best first, for the trials before the space is known


class CrosswindSampler(BaseSampler):  # type: ignore[misc]
    """Suggests by Crosswind's search: with sources its portfolio, without them a Gaussian process.

    A study of several objectives (four at most) is searched for its Pareto front. A failed trial counts as a
    configuration that cannot run, and so does one with a constraint above 0. Parameters that some complete trial does
    not have (conditional spaces) get random values, and so do all parameters once the space is used up.

    Args:
        sources: What was measured before, the nearest first: names of Crosswind's studies, studies of Optuna, or
            `Source`s, in which lower is better (negate what is maximised).
        space: Distributions by parameter, where they are known before the first trial; otherwise the first trial has
            the sources' best values, or random ones.
        seed: Of everything random. Workers with the same seed choose differently.
        server: URL of the server that has the named studies; by default $CROSSWIND_SERVER.
        folder: Shared folder that has them; by default $CROSSWIND_TUNE_FOLDER, else the store of this machine.

    Example:
        >>> study = optuna.create_study(sampler=CrosswindSampler(sources=["resnet-4-nodes"]))
        >>> study.optimize(objective, n_trials=20)
    """

    def __init__(
        self,
        sources: "Sequence[str | Source | optuna.Study]" = (),
        *,
        space: Distributions | None = None,
        seed: int = 0,
        server: str | None = None,
        folder: Path | str | None = None,
    ) -> None:
        self._given = tuple(sources) if isinstance(sources, list | tuple) else (sources,)
        for source in self._given:
            if not isinstance(source, str | Source | optuna.Study):
                raise InvalidInputError(f"source {source!r:.80}, expected a name, a Source or a study of Optuna")
        self._place = Place(server, folder)
        self._space = dict(space or {})
        self._seed = seed
        self._random = RandomSampler(seed)
        self._prior: PriorStudies | None = None
        self._start()

    def __getstate__(self) -> dict[str, Any]:
        """Return what is to be kept; searches are made again from the trials."""
        return {name: value for name, value in self.__dict__.items() if name != "_cache"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def reseed_rng(self) -> None:
        """Give a worker random values of its own."""
        self._random.reseed_rng()

    def infer_relative_search_space(
        self,
        study: "optuna.Study",
        trial: "optuna.trial.FrozenTrial",
    ) -> dict[str, Any]:
        """Return the distributions of complete trials that can be suggested together; before the first, those given."""
        return ShownStudy(study, trial.number, self._space).distributions

    def sample_relative(
        self, study: "optuna.Study", trial: "optuna.trial.FrozenTrial", search_space: Distributions
    ) -> dict[str, Any]:
        """Return the next configuration; none where no space is known yet, or nothing of it is left.

        Raises: InvalidInputError, NotFoundError, UnavailableError for sources that cannot be used; InvalidInputError
        for more than four objectives.
        """
        if not search_space:
            return {}
        self._read_sources(study)
        shown = ShownStudy(study, trial.number, search_space)
        cached = self._cache.get(shown.study(self._seed))
        with cached.lock:  # until other threads can see the suggestion
            records, choosing = shown.records()
            wanted = 1 + min(choosing, CHOOSING_MAX)  # those that choose now take the ones before
            suggested = cached.suggest(records, wanted)
            if len(suggested) < wanted:
                return {}
            values = {name: value for name, value in shown.outward(suggested[-1]).items() if name in search_space}
            study._storage.set_trial_system_attr(trial._trial_id, SUGGESTED, values)
        return values

    def sample_independent(
        self, study: "optuna.Study", trial: "optuna.trial.FrozenTrial", param_name: str, param_distribution: Any
    ) -> Any:
        """Return the value in one of the sources' best rows while the space is unknown, else a random one."""
        row = {} if SUGGESTED in trial.system_attrs else self._row(study, trial.number)
        parameter = SharedParameter.of(param_distribution)
        if param_name in row and domain_from_json(parameter.domain).contains(row[param_name]):
            return parameter.outward(row[param_name])
        return self._random.sample_independent(study, trial, param_name, param_distribution)

    def _start(self) -> None:
        self._cache = SearchCache(search_for, self._prior_studies)

    def _prior_studies(self, study: Study) -> PriorStudies:  # noqa: ARG002 - as the cache calls it
        return self._prior or PriorStudies()

    def _read_sources(self, study: "optuna.Study") -> PriorStudies:
        """Return the sources, which are read when they are first needed."""
        if self._prior is None:
            expected = is_maximised(study)
            self._prior = PriorStudies(
                bounded(chain.from_iterable(self._read(given, expected) for given in self._given))
            )
        return self._prior

    def _read(self, given: "str | Source | optuna.Study", expected: bool) -> list[Source]:
        if isinstance(given, Source):
            return [given]
        if isinstance(given, str):
            return self._place.sources([given], is_maximised=expected)
        check_direction(given.study_name, is_maximised=is_maximised(given), expected=expected)
        return [source_of(f"study {given.study_name}", trials_of(given))]

    def _row(self, study: "optuna.Study", number: int) -> Configuration:
        """Return the best row of the first source, of the next one for the next trial, then the second best rows."""
        best = chain.from_iterable(zip_longest(*(source.best(ROWS) for source in self._read_sources(study).sources)))
        rows = [row for row in best if row is not None]
        return rows[number % len(rows)] if rows else {}
