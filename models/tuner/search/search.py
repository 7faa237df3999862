"""The tuner that a service asks where nobody names another, fed with a study's records."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Protocol

from crosswind.data.schema.trial import Configuration, Study, TrialRecord
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.search.tuner import Tuner
from crosswind.models.tuner.space.space import Space
from crosswind.models.tuner.study.aim import Aim

if TYPE_CHECKING:
    from crosswind.models.tuner.search.pareto.pareto_tuner import ParetoTuner

MakeTuner = Callable[[Space, int], Tuner]
ROWS = 8  # of a source, best first, that a search for several objectives may begin with


@dataclass(frozen=True)
class Earlier:
    """Knowledge from before a study's first trial: sources, the nearest first, and what describes the study itself."""

    sources: tuple[Source, ...] = ()
    features: Mapping[str, float | str] = field(default_factory=dict)


NOTHING = Earlier()


class Search(Protocol):
    """A tuner that reads a study's records."""

    def observe(self, records: Sequence[TrialRecord]) -> None:
        """Learns the newest state of these trials."""
        ...

    def suggest(self, count: int) -> list[Configuration]:
        """Configurations to try next, none pending, and none measured but for repeats; fewer where no more are left."""
        ...


def default_tuner(space: Space, seed: int, earlier: Earlier = NOTHING) -> Tuner:
    """The portfolio where there are sources, else a Gaussian process; loaded when the first trial is asked for."""
    if earlier.sources:
        from crosswind.models.tuner.search.portfolio.tuner import PortfolioTuner  # noqa: PLC0415 - a second

        return PortfolioTuner(space, seed, earlier.sources, features=earlier.features)
    from crosswind.models.tuner.search.gaussian_process_tuner import GaussianProcessTuner  # noqa: PLC0415 - a second

    return GaussianProcessTuner(space, seed)


def search_for(study: Study, earlier: Earlier = NOTHING) -> Search:
    """Return the search for a study's aim; with limits or several objectives its first trials are from the sources."""
    space, aim = Space.from_json(study.space), Aim.of(study)
    if aim.goal is None:
        tuner = default_tuner(space, study.seed, earlier)
        return PlainSearch(_repeating(space, study.seed, tuner, aim.repeats) if aim.repeats else tuner)
    from crosswind.models.tuner.search.pareto.pareto_tuner import ParetoTuner  # noqa: PLC0415 - a second

    texts = ([clause.text for clause in part] for part in (aim.goal.objectives, aim.goal.limits))
    return AimedSearch(ParetoTuner(space, study.seed, *texts, first=_best_rows(earlier.sources, space)), aim)


def _best_rows(sources: Sequence[Source], space: Space) -> list[Configuration]:
    """The best configurations of each source in turn, those that the space has, each once."""
    ranked = chain.from_iterable(zip_longest(*(source.best(ROWS) for source in sources)))
    unique = {
        space.key(configuration): configuration
        for configuration in ranked
        if configuration is not None and space.contains(configuration)
    }
    return list(unique.values())


def _repeating(space: Space, seed: int, tuner: Tuner, share: float) -> Tuner:
    from crosswind.models.tuner.search.replicating_tuner import ReplicatingTuner  # noqa: PLC0415 - a second

    return ReplicatingTuner(space, seed, tuner, share=share)


@dataclass(frozen=True)
class PlainSearch:
    """For the smallest objective."""

    tuner: Tuner

    def observe(self, records: Sequence[TrialRecord]) -> None:
        """Learns the trials."""
        self.tuner.observe([record.trial for record in records])

    def suggest(self, count: int) -> list[Configuration]:
        """Return what the tuner suggests."""
        return self.tuner.suggest(count)


@dataclass(frozen=True)
class AimedSearch:
    """For several objectives, or within limits."""

    tuner: "ParetoTuner"
    aim: Aim

    def observe(self, records: Sequence[TrialRecord]) -> None:
        """Learns the trials, and what the outcomes of complete ones come to."""
        judged = {record.trial.trial_id: self.aim.judge(record) for record in records}
        complete = {trial_id: judgement for trial_id, judgement in judged.items() if judgement}
        self.tuner.learn([record.trial for record in records], complete)

    def suggest(self, count: int) -> list[Configuration]:
        """Return what the tuner suggests."""
        return self.tuner.suggest(count)
