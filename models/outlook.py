"""The next run of a workload, predicted from what is stored."""

from dataclasses import dataclass

import pandas as pd

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.features import all_runs, summaries
from crosswind.data.run import Run, RunState
from crosswind.data.store import Store
from crosswind.data.trial import Configuration
from crosswind.models.baseline import AlwaysMedian
from crosswind.models.explain.explain import explain_runs
from crosswind.models.explain.explanation import Verdict
from crosswind.models.predict import NextRun, predict_next
from crosswind.models.scores import skill

HISTORY_RUNS = 2000  # the newest; older ones say little about the next


@dataclass(frozen=True)
class Question:
    """The run that is asked about."""

    workload: str
    system: str
    configuration: Configuration
    world_size: int


@dataclass(frozen=True)
class Outlook:
    """The next run's median step time, if no known cause disturbs it.

    `left_out` earlier runs were slow for a cause that was found; `skill` is 1 - loss / loss of always the cohort's
    median, None where nothing could be validated.
    """

    prediction: NextRun
    left_out: int
    skill: float | None


def next_run(store: Store, question: Question) -> Outlook:
    """The distribution of the next run's median step time. Raises: InvalidInputError when too few runs compare."""
    wanted = RunFilter(workload=question.workload, system=question.system, state=RunState.COMPLETED)
    runs = [run for run in all_runs(store, wanted, limit=HISTORY_RUNS) if run.world_size is not None]
    explanations = explain_runs(store, runs)
    kept = [
        run for run in runs if not (explanations[run.run_id].verdict is Verdict.SLOW and explanations[run.run_id].cause)
    ]
    prediction = predict_next(_history(store, kept), question.configuration, world_size=question.world_size)
    naive = prediction.losses.get(AlwaysMedian.name)
    gained = skill(prediction.losses[prediction.method], naive) if naive else None
    return Outlook(prediction, len(runs) - len(kept), gained)


def _history(store: Store, runs: list[Run]) -> pd.DataFrame:
    history = pd.DataFrame(
        {
            "configuration": pd.Series([dict(run.configuration) for run in runs], dtype=object),
            "world_size": pd.Series([run.world_size for run in runs], dtype="int64"),
            "seconds": summaries(store, runs)["step_p50_seconds"].astype("float64"),
        }
    )
    return history[history["seconds"] > 0].reset_index(drop=True)
