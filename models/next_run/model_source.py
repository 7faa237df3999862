"""The model that answers about a workload: the registry's, the one kept from an earlier question, or one fitted now."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import pandas as pd

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.run import RunState
from crosswind.data.store.store import Store
from crosswind.models.next_run.cases import cases, jobs_revision, together
from crosswind.models.next_run.kept import EVERY, Kept, KeptModels, with_news
from crosswind.models.next_run.model import NextRunModel

FITTED_RUNS_MAX = 1000  # of the workload, and of all, where no model is registered: fitted in seconds
EVERY_RUNS_MAX: Mapping[Outcome, int] = {  # up to which one model learns from all; steps take longest to read
    Outcome.STEP: 2000,
    Outcome.RUN: 20_000,
    Outcome.JOB: 1000,
}
SLOW_RUNS = 20  # from which on a fit takes longer than the answer, by a second or more
NO_RUNS = (0, 0)


@dataclass(frozen=True)
class Promoted:
    """The registry's model of an outcome: its name, and how to load it."""

    name: str
    load: Callable[[], NextRunModel] = field(compare=False)


@dataclass(frozen=True)
class Stand:
    """Values that change when there is more to learn from: about the workload's runs, and the promoted model."""

    own_runs: tuple[int, int]
    promoted: Promoted | None

    @property
    def name(self) -> str | None:
        """The promoted model's name."""
        return None if self.promoted is None else self.promoted.name


@dataclass(frozen=True)
class ModelSource:
    """Models over one store; `notice` hears of a fit that takes seconds."""

    store: Store
    promoted: Callable[[Outcome], Promoted | None]
    notice: Callable[[str], None]

    def stand(self, workload: str, outcome: Outcome) -> Stand:
        """Return what a model of the workload is made of now, at little cost."""
        return Stand(self._runs(workload, outcome), self.promoted(outcome))

    def model(self, workload: str, outcome: Outcome, stand: Stand) -> Kept:
        """The kept model with the runs that have ended since, or a new one; either is kept for the next question."""
        named = workload if stand.own_runs != NO_RUNS else ""
        files = KeptModels(self.store.home)
        for name in (named, EVERY):
            kept = files.find(name, outcome)
            if kept is not None and (current := self._updated(kept, workload, outcome, stand)) is not None:
                if current is not kept:
                    files.keep(outcome, current)
                return current
        made = self._made(workload, outcome, stand)
        if made.workload in (named, EVERY):
            files.keep(outcome, made)
        return made

    def _updated(self, kept: Kept, workload: str, outcome: Outcome, stand: Stand) -> Kept | None:
        """The kept model, with the workload's new runs; None where it is of other runs than those stored now."""
        every_run = self._runs(None, outcome)
        if kept.promoted != stand.name or kept.is_stale(every_run[0]):
            return None
        if kept.own_runs == (every_run if kept.workload == EVERY else stand.own_runs):
            return kept
        rows = cases(self.store, outcome, workload=workload, limit=FITTED_RUNS_MAX)
        model = with_news(kept.model, workload, rows)
        if model is None or not model.has_run(workload):
            return None
        return replace(kept, model=model, workload=workload, own_runs=stand.own_runs)

    def _made(self, workload: str, outcome: Outcome, stand: Stand) -> Kept:
        every_run = self._runs(None, outcome)
        rows = cases(self.store, outcome, workload=workload, limit=FITTED_RUNS_MAX)
        made = partial(Kept, promoted=stand.name, stored=every_run[0])
        model = None if stand.promoted is None else stand.promoted.load()
        if model is not None and model.has_run(workload):
            news = model.with_runs(rows)
            return made(news, stand.name, workload, own_runs=stand.own_runs, learned=len(rows))
        is_whole = every_run[0] <= EVERY_RUNS_MAX[outcome]
        others = cases(self.store, outcome, limit=EVERY_RUNS_MAX[outcome] if is_whole else FITTED_RUNS_MAX)
        if rows.empty:
            names = list(map(str, others["workload"].unique()))
            unknown = NextRunModel(str(outcome)).fit_formulas(others).with_names(names)
            return made(unknown, None, "", own_runs=NO_RUNS, learned=len(others))
        learned = together(rows, others)
        fitted = self._fitted(outcome, learned)
        if is_whole:
            return made(fitted, None, EVERY, own_runs=every_run, learned=len(learned))
        return made(fitted, None, workload, own_runs=stand.own_runs, learned=len(learned))

    def _fitted(self, outcome: Outcome, rows: pd.DataFrame) -> NextRunModel:
        from crosswind.models.next_run.fit import fitted  # noqa: PLC0415 - heavy, and needed only to learn

        if len(rows) >= SLOW_RUNS:
            self.notice(f"fitting a model of {len(rows)} runs; it is kept for the next question")
        return fitted(self.store, outcome, rows)

    def _runs(self, workload: str | None, outcome: Outcome) -> tuple[int, int]:
        """Return a value that changes when there are more runs, of a workload or of all; their number comes first."""
        if outcome is Outcome.JOB:
            return jobs_revision(self.store)
        with self.store.catalog.read() as session:
            return session.runs.stand(RunFilter(workload=workload, state=RunState.COMPLETED))
