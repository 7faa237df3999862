"""Studies by the service of a fresh store; every trial is a training that runs then."""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import ClassVar

from benchmarks.tuning.peers import OptunaTpe, has
from benchmarks.tuning_live.exhaustive import Measure
from benchmarks.tuning_live.kept import Kept, Studied
from benchmarks.tuning_live.neighbour import neighbour
from benchmarks.tuning_live.plan import Plan
from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.database import open_database, sqlite_url
from crosswind.data.schema.run import new_ulid
from crosswind.data.schema.trial import Configuration, Study, Trial, TrialRecord
from crosswind.models.tuner.search.incumbents import Beliefs
from crosswind.models.tuner.search.random_tuner import RandomTuner
from crosswind.models.tuner.search.repeats import Repeats
from crosswind.models.tuner.search.search import default_tuner
from crosswind.models.tuner.search.tuner import Tuner
from crosswind.models.tuner.service.catalog import CatalogStudyService, Lease
from crosswind.models.tuner.space.space import Space

MakeTuner = Callable[[Space, int], Tuner]
LEASE_SECONDS = 600.0
SMALLEST, POSTERIOR = "smallest", "posterior"  # measurement of all, or the second answer of `crosswind tune best`


class Ongoing:
    """A tuner that lives as long as its study, where a service makes one for every call: Optuna draws as it goes."""

    name: ClassVar[str] = "ongoing"

    def __init__(self, make: MakeTuner) -> None:
        self._make = make
        self._tuner: Tuner | None = None
        self._observed: set[str] = set()

    def __call__(self, space: Space, seed: int) -> Tuner:
        """Itself; the tuner inside is made the first time."""
        self._tuner = self._tuner or self._make(space, seed)
        return self

    def suggest(self, count: int) -> list[Configuration]:
        """Return what the tuner inside suggests."""
        return self._tuner.suggest(count) if self._tuner else []

    def observe(self, trials: Sequence[Trial]) -> None:
        """Passes on the trials that are new."""
        if self._tuner:
            self._tuner.observe([trial for trial in trials if trial.trial_id not in self._observed])
            self._observed |= {trial.trial_id for trial in trials}


TUNERS: Mapping[str, Callable[[], MakeTuner]] = {
    "service": lambda: default_tuner,
    "random": lambda: RandomTuner,
    **({"optuna_tpe": lambda: Ongoing(OptunaTpe)} if has("optuna") else {}),
}


def study_all(plan: Plan, measure: Measure, kept: Kept) -> list[Studied]:
    """Runs the plan's studies that are not kept yet; those of one seed, by all tuners, follow one another."""
    for seed in plan.seeds:
        for tuner in TUNERS:
            if not any((row.tuner, row.seed) == (tuner, seed) for row in kept.studied):
                with neighbour(seed) if has_neighbour(seed) else nullcontext():
                    kept.add(study(plan, tuner, seed, measure))
    return [row for row in kept.studied if row.seed in plan.seeds]


def has_neighbour(seed: int) -> bool:
    """Return whether the study shares the machine with somebody else's load."""
    return seed % 2 == 1


def study(plan: Plan, tuner: str, seed: int, measure: Measure) -> Studied:
    """One study from its first trial to its answers."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        catalog = Catalog(open_database(sqlite_url(Path(folder) / "catalog.sqlite")))
        try:
            service = CatalogStudyService(catalog, make_tuner=TUNERS[tuner]())
            made = service.create(
                Study(
                    new_ulid(),
                    tuner,
                    plan.space_json,
                    "seconds_per_sample",
                    "s",
                    seed,
                    time.time_ns(),
                    trials_max=plan.trials,
                )
            )
            answered = _answered(service, made, measure)
        finally:
            catalog.close()
    return Studied(tuner, seed, *answered, wall_seconds=time.monotonic() - begun)


def _answered(
    service: CatalogStudyService, made: Study, measure: Measure
) -> tuple[dict[str, str], tuple[tuple[str, float], ...]]:
    """Measures what the service asks for until the budget is spent; the answers, and the trials in their order."""
    lease, space = Lease("live", LEASE_SECONDS), Space.from_json(made.space)
    while suggested := service.suggest(made.study_id, 1, lease):
        [record] = suggested
        objective = measure(record.trial.configuration)
        service.complete(made.study_id, record.trial.trial_id, objective, owner=lease.owner)
    best, done = service.best(made.study_id), _done(service.trials(made.study_id))
    if best is None:
        raise ValueError(f"study {made.name!r} has no complete trial, expected a budget of one at least")
    measured = Repeats.of(space, [configuration for configuration, _ in done], [seconds for _, seconds in done])
    believed = Beliefs.of(measured, made.seed).answer().configuration
    answers = {SMALLEST: space.key(best.configuration), POSTERIOR: space.key(believed)}
    return answers, tuple((space.key(configuration), seconds) for configuration, seconds in done)


def _done(records: Sequence[TrialRecord]) -> list[tuple[Configuration, float]]:
    trials = [record.trial for record in records]
    return [(trial.configuration, trial.objective) for trial in trials if trial.objective is not None]
