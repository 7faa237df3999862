"""The next run of a workload, predicted from what is stored."""

from dataclasses import dataclass

from crosswind.data.store import Store
from crosswind.data.trial import Configuration
from crosswind.models.baseline import AlwaysMedian
from crosswind.models.earlier import Outcome, earlier_runs
from crosswind.models.predict import NextRun, predict_next
from crosswind.models.scores import skill


@dataclass(frozen=True)
class Question:
    """The run that is asked about."""

    workload: str
    system: str
    configuration: Configuration
    world_size: int


@dataclass(frozen=True)
class Outlook:
    """The next run's outcome, if no known cause disturbs it.

    `left_out` earlier runs were slow for a cause that was found; `skill` is 1 - loss / loss of always the cohort's
    median, None where nothing could be validated.
    """

    prediction: NextRun
    left_out: int
    skill: float | None
    outcome: Outcome = Outcome.STEP


def next_run(store: Store, question: Question) -> Outlook:
    """The distribution of the next run's outcome, in seconds. Raises: InvalidInputError when too few runs compare."""
    earlier = earlier_runs(store, question.workload, question.system)
    prediction = predict_next(earlier.history, question.configuration, world_size=question.world_size)
    naive = prediction.losses.get(AlwaysMedian.name)
    gained = skill(prediction.losses[prediction.method], naive) if naive else None
    return Outlook(prediction, earlier.left_out, gained, earlier.outcome)
