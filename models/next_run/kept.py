"""Models fitted for a question, kept in files below the store's home for the next one."""

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from crosswind.data.lake.publish import hidden_name, publish
from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.errors import InvalidInputError, MalformedError
from crosswind.data.store.model_files import BYTES_MAX
from crosswind.models.next_run.cohort_store import ended_runs, key_of, questions_of
from crosswind.models.next_run.model import NextRunModel
from crosswind.models.registry.archive import read_model, write_model

FOLDER = "models"  # below the store's home, as the registry's
KEPT = "fitted"  # in it: no model of the registry has this name
EVERY = "*"  # in place of a workload: the model has learned from all runs, and answers about any
RECIPE = 3  # raised whenever a fit of the same runs gives another model
STALE_SHARE = 0.05  # of the runs that a model learned from: with more new ones, it is fitted again


@dataclass(frozen=True)
class Kept:
    """A model, and the stored runs that it was fitted on."""

    model: NextRunModel
    name: str | None  # in the registry; None was fitted for a question
    workload: str  # EVERY: all; empty: none that ran
    promoted: str | None  # name in the registry of the model that was promoted then
    own_runs: tuple[int, int]  # revision of the workload's runs that it has seen, or of all
    stored: int  # runs of all workloads when it was fitted
    learned: int  # those of them that it learned from
    recipe: int = RECIPE

    def is_stale(self, stored: int) -> bool:
        """Return whether so many runs are stored by now that they should be learned from, or some are gone."""
        return not 0 <= stored - self.stored <= STALE_SHARE * self.learned


@dataclass(frozen=True)
class KeptModels:
    """The kept models of a store's folder; one that cannot be written or read is fitted again."""

    home: Path

    def find(self, workload: str, outcome: Outcome) -> Kept | None:
        """The model kept for a workload; None without one that this version can read."""
        with suppress(OSError, MalformedError):
            path = self._path(workload, outcome)
            if path.stat().st_size <= BYTES_MAX:
                kept = read_model(path.read_bytes())
                if isinstance(kept, Kept) and (kept.workload, kept.recipe) == (workload, RECIPE):
                    return kept
        return None

    def keep(self, outcome: Outcome, kept: Kept) -> None:
        """Write a model in place of the one before, whole or not at all."""
        path = self._path(kept.workload, outcome)
        with suppress(OSError, InvalidInputError):  # a folder that others own: the next question is fitted anew
            hidden = hidden_name(self.home / FOLDER, path)
            try:
                hidden.write_bytes(write_model(kept))
                publish(hidden, path)
            finally:
                hidden.unlink(missing_ok=True)

    def _path(self, workload: str, outcome: Outcome) -> Path:
        digest = hashlib.sha256(workload.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self.home / FOLDER / KEPT / f"{outcome}-{digest}.cwm"


def with_news(model: NextRunModel, workload: str, rows: pd.DataFrame) -> NextRunModel | None:
    """The model with those of a workload's runs that it has not seen; None where one that it saw is another by now."""
    seen = {
        (cohort.question.system, run_id): (key, seconds)
        for key, cohort in model.cohorts_of(workload)
        for run_id, seconds in zip(cohort.run_ids, cohort.seconds, strict=True)
    }
    for question, run in zip(questions_of(rows), ended_runs(rows), strict=True):
        if seen.get((question.system, run.run_id)) not in (None, (key_of(question), run.seconds)):
            return None
    return model.with_runs(rows)
