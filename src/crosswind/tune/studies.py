"""A study in a Python program: trials asked for and told, and the best so far."""

from __future__ import annotations

import logging
import math
import os
import threading
import weakref
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self, SupportsFloat

from crosswind.cli.verbs.tune.asker import asking_process
from crosswind.cli.verbs.tune.judging import judged
from crosswind.cli.verbs.tune.outbox import Outbox, TrialResult
from crosswind.data.schema.context import REASON_MAX
from crosswind.data.schema.errors import ConflictError, InvalidInputError, NotFoundError, ProjectError, UnavailableError
from crosswind.data.schema.report import Report
from crosswind.data.schema.trial import ENDED, Configuration, TrialState
from crosswind.tune.beats import Beats
from crosswind.tune.loops import Loop, run_loop, run_loop_async
from crosswind.tune.trials import Trial, Value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    import pandas as pd
    import plotly.graph_objects as go

    from crosswind.dashboards.figures.search.charts import StudyCharts
    from crosswind.data.schema import trial as schema
    from crosswind.data.schema.trial import Parameter
    from crosswind.models.tuner.service.service import StudyService
    from crosswind.models.tuner.space.parameter import Domain

LEASE_SECONDS = 600.0
ENDINGS = {str(state): state for state in ENDED - {TrialState.DONE}}

logger = logging.getLogger("crosswind")


@dataclass(frozen=True)
class FinishedTrial:
    """A measured configuration.

    Args:
        trial_id: By which `crosswind tune` knows it.
        configuration: Values of the parameters, by name.
        value: Of the study's (first) objective, as the program reported it.
        outcomes: What else was reported, by name.
    """

    trial_id: str
    configuration: Configuration
    value: float
    outcomes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """The service that has a study, and the outbox for what it does not take now."""

    service: StudyService
    outbox: Outbox
    opened: ExitStack


class Study:
    """A search that this program shares with whoever else works on the study of this name.

    `crosswind.tune.study` opens it. For several threads. Trials that were asked for and not told are given back when
    the study is closed, or the program ends.
    """

    def __init__(
        self,
        place: Place,
        study: schema.Study,
        *,
        make: Callable[[Configuration], object] | None = None,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self._place, self._study, self._make = place, study, make
        self._lease_seconds = lease_seconds
        self._domains: dict[str, Domain] = {}  # of the parameters that trials of this process have named
        self._beats = Beats(place.service, study.study_id)
        self._asking = threading.Lock()
        self._end = weakref.finalize(self, _closed, place, study.study_id, self._beats, os.getpid())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Study({self.name!r}, {self.direction} {self._study.objective!r})"

    def close(self) -> None:
        """Give back what was not told, and close the store."""
        self._end()

    @property
    def name(self) -> str:
        """The study's name."""
        return self._study.name

    @property
    def study_id(self) -> str:
        """The study's id."""
        return self._study.study_id

    @property
    def direction(self) -> str:
        """`minimise` or `maximise`."""
        return "maximise" if self._study.is_maximised else "minimise"

    @property
    def space(self) -> Mapping[str, object]:
        """The space as a study file has it."""
        return self._place.service.status(self.study_id).study.space if self.grows else self._study.space

    def ask(self) -> Trial | None:
        """Return a trial to evaluate, None once the budget or the space is used up or the study was stopped.

        Raises: UnavailableError when no service answers; PausedError while the study is paused, when `optimize` waits;
        InvalidInputError once the study is closed.
        """
        if not self._end.alive:  # nobody would renew the lease, or give the trial back
            raise InvalidInputError(
                f"study {self.name!r} is closed, expected an open one: crosswind.tune.study opens it"
            )
        holding = ExitStack()
        try:
            lease = holding.enter_context(asking_process(self._lease_seconds))
            with self._asking:
                self._send()
                records = self._place.service.suggest(self.study_id, 1, lease)
        except BaseException:
            holding.close()
            raise
        if not records:
            holding.close()
            return None
        trial = Trial(records[0], self, holding)
        self._beats.hold(trial, lease)
        return trial

    def tell(self, trial: Trial, value: Value | None = None, *, state: str | None = None, reason: str = "") -> None:
        """Report what came of a trial: a value, a mapping of outcomes, or `failed`, `infeasible` or `pruned`.

        A value is as measured, also where it is maximised. The mapping names what was measured: the objective, or what
        its expression needs, and anything else that is worth keeping. Where no service answers, the report is kept in
        the spool and sent by the next call.

        Raises: InvalidInputError for a number that is not finite, or both a value and a state; ConflictError when
        somebody else has the trial by now.
        """
        self._report(trial, self._result(trial, value, state, reason))

    def release(self, trial: Trial, *, checkpoint: str | None = None) -> None:
        """Give a trial back unmeasured: the next who asks gets it, with the checkpoint to go on from."""
        self._report(trial, TrialResult(self.study_id, trial.trial_id, None, owner=trial.owner, checkpoint=checkpoint))

    def optimize(
        self,
        objective: Callable[[Trial], Value],
        trials: int | None = None,
        *,
        parallel: int = 1,
        timeout: float | None = None,
        catch: tuple[type[Exception], ...] = (),
    ) -> None:
        """Evaluate trials by a function until so many are done, the budget is used up, or the seconds are over.

        The function takes a trial and returns its value, or a mapping of outcomes. An exception fails the trial; of a
        type in `catch` the loop goes on, any other ends it and is raised. Ctrl-C gives the running trials back.

        Args:
            objective: Called in this thread, or in as many threads as are `parallel`.
            trials: To evaluate in this call; None for as many as the study's budget has left.
            parallel: Trials at a time.
            timeout: Seconds after which no further trial is begun.
            catch: Exceptions after which the loop goes on.

        Raises:
            InvalidInputError: For a loop without an end, and where the function returns no number.
        """
        self._check_end(trials, timeout)
        run_loop(Loop.of(self, trials, timeout, catch), objective, parallel)

    async def optimize_async(
        self,
        objective: Callable[[Trial], Awaitable[Value]],
        trials: int | None = None,
        *,
        parallel: int = 1,
        timeout: float | None = None,
        catch: tuple[type[Exception], ...] = (),
    ) -> None:
        """Do the same with a coroutine function, as many trials at a time as are `parallel`."""
        self._check_end(trials, timeout)
        await run_loop_async(Loop.of(self, trials, timeout, catch), objective, parallel)

    def enqueue(self, configuration: Configuration) -> None:
        """Have a configuration tried before anything new; one that waits already is not added again.

        Raises: InvalidInputError for one outside of the space; ConflictError where budget or hours are used up.
        """
        self._place.service.enqueue(self.study_id, [dict(configuration)])

    def extend(self, *, trials: int | None = None, hours: float | None = None) -> None:
        """Add trials to the budget of all who share the study, and hours from now on or from their present end.

        Raises: InvalidInputError for a number out of bounds, and where the study has no such budget.
        """
        self._study = self._place.service.extend(self.study_id, trials=trials, hours=hours)

    def pause(self) -> None:
        """Hand out no trial to anybody until `resume`; `optimize` waits, running trials go on and are taken."""
        self._study = self._place.service.pause(self.study_id)

    def resume(self) -> None:
        """Hand out trials again after a pause or a stop."""
        self._study = self._place.service.resume(self.study_id)

    def stop(self) -> None:
        """Hand out no more trials to anybody; `optimize` ends, running trials go on and are taken."""
        self._study = self._place.service.stop(self.study_id)

    @property
    def make(self) -> Callable[[Configuration], object] | None:
        """The maker of the program's own object for a configuration; None where the space is no dataclass."""
        return self._make

    @property
    def grows(self) -> bool:
        """Return whether the study is define-by-run: programs name its parameters while they run."""
        return self._study.define_by_run

    def value_of(self, trial: Trial, name: str, domain: Domain) -> Parameter:
        """Return a trial's value of a parameter that its program names; `trial.suggest_float` and the like call it.

        Raises: InvalidInputError for a parameter that a fixed space does not have, and for other values than it has.
        """
        from crosswind.tune.defining import drawn  # noqa: PLC0415 - heavy

        before = self._domains.setdefault(name, domain)
        if before != domain:
            raise InvalidInputError(f"parameter {name} is {domain}, expected {before} as in earlier trials")
        value = trial.suggested(name)
        if value is None and not self.grows:
            raise InvalidInputError(f"parameter {name} is not in the trial, expected {', '.join(trial.configuration)}")
        if value is None:
            return drawn(domain, name, trial.trial_id, self._study.seed)
        if not domain.contains(value):
            raise InvalidInputError(f"parameter {name} is {value!r} in study {self.name!r}, expected {domain}")
        return value

    def report(self, trial: Trial, values: Mapping[int, float]) -> str:
        """Send a trial's intermediate values by step; return in words why it should stop, empty to go on.

        `trial.report` and `trial.should_stop` call it.
        """
        reports = [Report(step, self._study.signed(value)) for step, value in values.items()]
        try:
            return self._place.service.report(self.study_id, trial.trial_id, reports, owner=trial.owner)
        except ConflictError as error:  # somebody else has it by now
            return str(error)

    @property
    def best(self) -> FinishedTrial:
        """The best measured trial within the limits. Raises: NotFoundError before the first one."""
        record = self._place.service.status(self.study_id).best
        if record is None:
            raise NotFoundError(f"study {self.name!r} has no trial with a value yet")
        return self._finished(record)

    @property
    def front(self) -> list[FinishedTrial]:
        """The trials that no other beats in every objective, sorted by the first; with one objective the best."""
        return [self._finished(record) for record in self._place.service.status(self.study_id).front]

    @property
    def trials(self) -> pd.DataFrame:
        """All trials, oldest first: number, id, state, value, parameters, outcomes, run and reason."""
        from crosswind.tune.tables import trial_frame  # noqa: PLC0415 - pandas

        return trial_frame(self._study, self._records())

    def importance(self) -> pd.Series[float]:
        """Return the share of each parameter alone in the variation of the objective, largest first.

        What is missing to 1 follows several parameters together: `crosswind.models.tuner.evidence.importance`.
        Raises: InvalidInputError for fewer than eight trials with a value; NotFoundError without any.
        """
        import pandas as pd  # noqa: PLC0415 - heavy

        return pd.Series(dict(self._charts().importances()), name="importance", dtype=float)

    def importance_plot(self) -> go.Figure:
        """Return `importance` as bars."""
        return self._charts().importance().draw().as_plotly()

    def history_plot(self) -> go.Figure:
        """Return the values in the order of the trials, and the best so far."""
        return self._charts().history().draw().as_plotly()

    def slice_plot(self, *parameters: str) -> go.Figure:
        """Return the values along these parameters, by default all."""
        return self._charts().slices(parameters).draw().as_plotly()

    def parallel_coordinates_plot(self, *parameters: str) -> go.Figure:
        """Return the trials as lines through these parameters, by default all; the best tenth stands out."""
        return self._charts().parallel(parameters).draw().as_plotly()

    def contour_plot(self, *parameters: str) -> go.Figure:
        """Return the predicted objective over two parameters, by default the two most important, and the trials."""
        if len(parameters) not in (0, 2):
            raise InvalidInputError(f"there are {len(parameters)} parameters, expected two or none")
        return self._charts().contour(parameters).draw().as_plotly()

    def _charts(self) -> StudyCharts:
        from crosswind.dashboards.figures.search.charts import StudyCharts  # noqa: PLC0415 - heavy

        study = self._place.service.status(self.study_id).study if self.grows else self._study
        return StudyCharts(study, self._records())

    def _check_end(self, trials: int | None, timeout: float | None) -> None:
        if trials is None and timeout is None and self._study.trials_max is None and self._study.hours is None:
            raise InvalidInputError(f"study {self.name!r} has no budget: expected trials=N or timeout=SECONDS")

    @property
    def reports(self) -> pd.DataFrame:
        """All intermediate values: `trial_id`, `step`, `value`, as they were measured."""
        from crosswind.tune.tables import report_frame  # noqa: PLC0415 - pandas

        return report_frame(self._study, self._place.service.reports(self.study_id))

    def _records(self) -> Sequence[schema.TrialRecord]:
        return self._place.service.trials(self.study_id)

    def _finished(self, record: schema.TrialRecord) -> FinishedTrial:
        assert record.trial.objective is not None  # noqa: S101 - the best are measured
        value = self._study.signed(record.trial.objective)
        return FinishedTrial(record.trial_id, dict(record.trial.configuration), value, dict(record.outcomes))

    def _result(self, trial: Trial, value: Value | None, state: str | None, reason: str) -> TrialResult:
        if (value is None) == (state is None):
            raise InvalidInputError(
                f"trial {trial.trial_id}: value is {value} and state is {state}, expected one of them"
            )
        if value is not None:
            objective, outcomes = self._measured(trial, value)
            done = TrialResult(self.study_id, trial.trial_id, TrialState.DONE, objective, owner=trial.owner)
            return replace(done, outcomes=outcomes)
        if state not in ENDINGS:
            raise InvalidInputError(f"state is {state!r}, expected {' or '.join(sorted(ENDINGS))}")
        text = (reason or str(state))[:REASON_MAX]
        return TrialResult(self.study_id, trial.trial_id, ENDINGS[state], reason=text, owner=trial.owner)

    def _measured(self, trial: Trial, value: Value) -> tuple[float, Mapping[str, float]]:
        """Return the objective as services keep it, and the outcomes."""
        if isinstance(value, Mapping):
            outcomes = {name: number_of(name, number) for name, number in value.items()}
            return judged(self._study, trial.configuration, outcomes, "expected it in the mapping"), outcomes
        if self._study.objectives:
            names = ", ".join(self._study.objectives)
            raise InvalidInputError(f"value is {value!r:.80}, expected a mapping of the outcomes that give {names}")
        return self._study.signed(number_of("value", value)), {}

    def _report(self, trial: Trial, result: TrialResult) -> None:
        """Tell the service, or keep the report where no service answers."""
        if self.grows and result.state is not None:
            result = replace(result, configuration=trial.used(result.state), parameters=trial.new_parameters)
        self._beats.let_go(trial)
        try:
            trial.send_reports()
            self._send()
            result.to(self._place.service)
        except UnavailableError as error:
            logger.warning("%s: kept in %s, reported by the next call", error, self._place.outbox.keep(result))
        finally:
            trial.close()

    def _send(self) -> None:
        for problem in self._place.outbox.send(self._place.service):
            logger.warning("%s", problem)


def number_of(name: str, value: object) -> float:
    """Return a finite number of Python, NumPy or PyTorch. Raises: InvalidInputError naming it."""
    try:
        number = float(value) if isinstance(value, SupportsFloat) else None
    except (TypeError, ValueError):
        number = None
    if number is None or not math.isfinite(number):
        raise InvalidInputError(f"{name} is {value!r:.80}, expected a finite number")
    return number


def _closed(place: Place, study_id: str, beats: Beats, process: int) -> None:
    """Give back what is still held; a fork of the process holds nothing."""
    if os.getpid() != process:
        return
    for trial in beats.end():
        with suppress(ProjectError):
            place.service.release(study_id, trial.trial_id, owner=trial.owner)
        trial.close()
    place.opened.close()
