"""Searches: the tuner for a study's aim, fed with the study's records."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Protocol

from crosswind.data.schema.answers.studies import StudySources
from crosswind.data.schema.trial import Configuration, Study, Trial, TrialRecord, TrialState
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.search.tuner import Tuner, weights_of
from crosswind.models.tuner.study.aim import Aim

if TYPE_CHECKING:  # NumPy, which those do without who only look at a study
    from crosswind.models.tuner.search.pareto.pareto_tuner import ParetoTuner
    from crosswind.models.tuner.space.space import Space

MakeTuner = Callable[["Space", int], Tuner]
ROWS = 8  # of a source, best first, that a search for several objectives may begin with


@dataclass(frozen=True)
class PriorStudies:
    """Evidence from before a study's first trial.

    Args:
        sources: What was measured elsewhere, the nearest first.
        features: What describes the study itself, as the sources' features describe them.
        report: The same in words: why these are used, and what was left out.
    """

    sources: tuple[Source, ...] = ()
    features: Mapping[str, float | str] = field(default_factory=dict)
    report: StudySources = field(default_factory=StudySources, compare=False)


NO_PRIOR_STUDIES = PriorStudies()


class Search(Protocol):
    """A tuner that reads a study's records."""

    def observe(self, records: Sequence[TrialRecord]) -> None:
        """Learn the newest state of these trials."""
        ...

    def suggest(self, count: int) -> list[Configuration]:
        """Return configurations to try next, none pending, none measured but for repeats; fewer where none is left."""
        ...

    def weights(self) -> Mapping[str, float]:
        """Return the weight of each source by name and, last, that of the study's own model; empty without sources."""
        ...


def default_tuner(space: "Space", seed: int, prior: PriorStudies = NO_PRIOR_STUDIES) -> Tuner:
    """Return the portfolio where there are sources, else a Gaussian process; their modules load only here."""
    if prior.sources:
        from crosswind.models.tuner.search.portfolio.tuner import PortfolioTuner  # noqa: PLC0415 - a second

        return PortfolioTuner(space, seed, prior.sources, features=prior.features)
    from crosswind.models.tuner.search.gaussian_process_tuner import GaussianProcessTuner  # noqa: PLC0415 - a second

    return GaussianProcessTuner(space, seed)


def search_for(study: Study, prior: PriorStudies = NO_PRIOR_STUDIES) -> Search:
    """Return the search for a study's aim; with limits or several objectives its first trials are from the sources."""
    from crosswind.models.tuner.space.space import Space  # noqa: PLC0415 - see above

    space, aim = Space.from_json(study.space), Aim.of(study)
    if aim.goal is None:
        tuner = _named_tuner(study, space, prior) if study.search else default_tuner(space, study.seed, prior)
        search = PlainSearch(_repeating(space, study.seed, tuner, study.repeats) if study.repeats else tuner)
        return StoppingSearch(search, study) if study.stop else search
    from crosswind.models.tuner.search.pareto.pareto_tuner import ParetoTuner  # noqa: PLC0415 - a second

    texts = ([clause.text for clause in part] for part in (aim.goal.objectives, aim.goal.limits))
    return AimedSearch(ParetoTuner(space, study.seed, *texts, first=_best_rows(prior.sources, space)), aim)


def _named_tuner(study: Study, space: "Space", prior: PriorStudies) -> Tuner:
    """Return the tuner that the study asks for; prior studies are for the portfolio alone."""
    from crosswind.models.tuner.search.every_tuner import BY_NAME  # noqa: PLC0415 - seconds
    from crosswind.models.tuner.search.portfolio.tuner import PortfolioTuner  # noqa: PLC0415 - a second

    made = BY_NAME[study.search or ""]
    if made is PortfolioTuner:
        return PortfolioTuner(space, study.seed, prior.sources, features=prior.features)
    return made(space, study.seed)


def _best_rows(sources: Sequence[Source], space: "Space") -> list[Configuration]:
    """Return the best configurations of the sources in turn, those that the space has, without duplicates.

    One that failed in any of them comes after all others.
    """
    ranked = chain.from_iterable(zip_longest(*(source.best(ROWS) for source in sources)))
    unique = {
        space.key(configuration): configuration
        for configuration in ranked
        if configuration is not None and space.contains(configuration)
    }
    failed = {
        space.key(configuration)
        for source in sources
        for configuration in source.failed
        if space.contains(configuration)
    }
    return [unique[key] for key in sorted(unique, key=lambda key: key in failed)]


def _repeating(space: "Space", seed: int, tuner: Tuner, share: float) -> Tuner:
    from crosswind.models.tuner.search.replicating_tuner import ReplicatingTuner  # noqa: PLC0415 - a second

    return ReplicatingTuner(space, seed, tuner, share=share)


@dataclass(frozen=True)
class PlainSearch:
    """A search for the smallest objective."""

    tuner: Tuner

    def observe(self, records: Sequence[TrialRecord]) -> None:
        """Learn the trials."""
        self.tuner.observe([_seen(record) for record in records])

    def suggest(self, count: int) -> list[Configuration]:
        """Return the tuner's suggestions."""
        return self.tuner.suggest(count)

    def weights(self) -> Mapping[str, float]:
        """Return the weights of the tuner's sources and of its own model."""
        return weights_of(self.tuner)


@dataclass
class StoppingSearch:
    """A search that suggests nothing more once the next trial is expected to gain less than the noise."""

    search: PlainSearch
    study: Study
    _records: dict[str, TrialRecord] = field(default_factory=dict, init=False)

    def observe(self, records: Sequence[TrialRecord]) -> None:
        """Learn the trials."""
        self._records |= {record.trial_id: record for record in records}
        self.search.observe(records)

    def suggest(self, count: int) -> list[Configuration]:
        """Return the search's suggestions, or none."""
        from crosswind.models.tuner.search.enough import prospect_of  # noqa: PLC0415 - a second, and seldom asked for

        prospect = prospect_of(self.study, list(self._records.values()))
        return [] if prospect and prospect.is_enough else self.search.suggest(count)

    def weights(self) -> Mapping[str, float]:
        """Return the weights of the search."""
        return self.search.weights()


@dataclass(frozen=True)
class AimedSearch:
    """A search for several objectives, or within limits."""

    tuner: "ParetoTuner"
    aim: Aim

    def observe(self, records: Sequence[TrialRecord]) -> None:
        """Learn the trials, and the objectives and limits of complete ones."""
        judged = {record.trial.trial_id: self.aim.judge(record) for record in records}
        complete = {trial_id: judgement for trial_id, judgement in judged.items() if judgement}
        self.tuner.learn([_seen(record) for record in records], complete)

    def suggest(self, count: int) -> list[Configuration]:
        """Return the tuner's suggestions."""
        return self.tuner.suggest(count)

    def weights(self) -> Mapping[str, float]:
        """Return nothing: sources only lend this search its first trials."""
        return {}


def _seen(record: TrialRecord) -> Trial:
    """Return the trial as a tuner must see it: one that ended for another reason frees its configuration."""
    return replace(record.trial, state=TrialState.RELEASED) if record.is_void else record.trial
