"""The end of a search that has found enough: its next trial is expected to gain less than measurements scatter."""

from collections.abc import Sequence
from dataclasses import dataclass

from crosswind.data.schema.trial import Configuration, Study, TrialRecord, TrialState
from crosswind.models.gp.one_thread import one_thread
from crosswind.models.tuner.search.incumbents import Beliefs
from crosswind.models.tuner.search.repeats import Repeats
from crosswind.models.tuner.space.space import Space

# Configurations that have to be measured: fewer say little about what is left, or about the noise. Chosen on the first
# seeds of benchmarks/tuning_stop.py, where it matters more than how far below the noise the gain has to be.
MEASURED_MIN, MEASURED_A_PARAMETER = 12, 7
CANDIDATES = 1000  # random ones of a larger space
LEAST_SHOWN = 0.001  # share that is put in numbers
NEIGHBOURS = 8  # draws a parameter around the best


@dataclass(frozen=True)
class Prospect:
    """The expected gain of the best trial that is left, and the noise of one measurement, both as shares of the best.

    An objective that is 0 at the best leaves both in its unit.
    """

    gain: float
    noise: float

    @property
    def is_enough(self) -> bool:
        """Return whether the gain would drown in the noise."""
        return self.gain < self.noise

    @property
    def sentence(self) -> str:
        """The same in words."""
        return (
            f"the next trial is expected to gain {share_words(self.gain)}, less than the noise of "
            f"{share_words(self.noise)}"
        )


def measured_min(n_parameters: int) -> int:
    """Return how many configurations have to be measured before a search may end by itself."""
    return max(MEASURED_MIN, 2 + MEASURED_A_PARAMETER * n_parameters)


def prospect_of(study: Study, records: Sequence[TrialRecord]) -> Prospect | None:
    """Return what more trials of a study with one objective promise.

    None while too little is measured, and where no configuration is left. Expected improvement is that of the answer
    without noise after one more measurement, under a process whose noise is learned with it.
    """
    space = Space.from_json(study.space)
    in_order = sorted(records, key=lambda record: record.trial_id)  # the same answer to all who ask
    measured = [record.trial for record in in_order if record.trial.state is TrialState.DONE]
    configurations = [trial.configuration for trial in measured]
    repeats = Repeats.of(space, configurations, [trial.objective or 0.0 for trial in measured])
    if len(repeats) < measured_min(len(space.domains)):
        return None
    taken = {space.key(record.trial.configuration) for record in records if not record.is_void}
    left = [candidate for candidate in _candidates(space, repeats, study.seed) if space.key(candidate) not in taken]
    if not left:
        return None
    with one_thread():
        beliefs = Beliefs.of(repeats, study.seed)
        gain = float(beliefs.gain_of_new(space.coordinates(left)).max())
    best = 1.0 if beliefs.repeats.is_logarithmic else abs(min(float(group.mean()) for group in repeats.values)) or 1.0
    return Prospect(gain / best, beliefs.process.noise / best)


def _candidates(space: Space, repeats: Repeats, seed: int) -> list[Configuration]:
    best = repeats.best(1).configurations[0]
    return [*space.neighbours(best, NEIGHBOURS, seed), *space.random(CANDIDATES + len(repeats), seed)]


def share_words(share: float) -> str:
    """Return a gain or noise in words: `2.4 %`, `under 0.1 %`."""
    return f"{100 * share:.2g} %" if share >= LEAST_SHOWN else f"under {100 * LEAST_SHOWN:g} %"
