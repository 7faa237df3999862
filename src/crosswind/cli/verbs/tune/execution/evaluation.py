"""One trial evaluated: its program runs, is recorded and watched, and its result is reported."""

import math
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from crosswind.cli.verbs.tune.config_file import write_config
from crosswind.cli.verbs.tune.context import VARIABLE
from crosswind.cli.verbs.tune.execution.blame import fault_of_command
from crosswind.cli.verbs.tune.execution.doubts import Doubts
from crosswind.cli.verbs.tune.execution.objective_output import Matches, listening, outcomes_in
from crosswind.cli.verbs.tune.execution.run_outcomes import step_outcomes, step_seconds
from crosswind.cli.verbs.tune.execution.watch import Watch
from crosswind.cli.verbs.tune.filling import check_names, filled, variables
from crosswind.cli.verbs.tune.judging import ADVICE, is_reported, judged
from crosswind.cli.verbs.tune.outbox import Outbox, TrialResult
from crosswind.data.schema.context import Numbers, context_text, fitting_reason, outcomes_with
from crosswind.data.schema.errors import ConflictError, InvalidInputError, NotFoundError, ProjectError, UnavailableError
from crosswind.data.schema.run import new_ulid
from crosswind.data.schema.trial import Study, TrialRecord, TrialState
from crosswind.ingest.wrapper.wrapper import Launch, Outcome, launch
from crosswind.models.tuner.service.service import Lease, StudyService

OK, FAILED, STOPPED, USED_UP, LATER = 0, 1, 3, 4, 75
OURS = frozenset({STOPPED, USED_UP, LATER})  # exit codes that job scripts ask for; a failing program's become 1
CHECKPOINT, CONFIG_FILE = "checkpoint", "config_file"


@dataclass(frozen=True)
class Program:
    """The program that is run for each trial, and the place of its result.

    `objective_from` is a file that the program writes, `pattern` finds the result there or on the output; without
    either it is an outcome of the recorded run. `context` are numbers of its input. `infeasible` are exit codes that
    say that a configuration cannot be. Where this process is killed, the program ends within `orphan_seconds`.
    """

    command: tuple[str, ...]
    spool: Path
    workload: str | None = None
    exports: Mapping[str, str] = field(default_factory=dict)
    config_file: str | None = None
    checkpoint: str | None = None
    objective_from: str | None = None
    pattern: re.Pattern[str] | None = None
    context: Numbers = field(default_factory=dict)
    infeasible: frozenset[int] = frozenset()
    agent_seconds: float | None = 1.0
    step_lines: str | None = None
    injects: bool = True
    orphan_seconds: float | None = 20.0

    def launch_of(self, study: Study, record: TrialRecord, run_id: str) -> Launch:
        """Return what is to be started for a trial; its configuration file is there then.

        Raises: InvalidInputError for a command that the configuration does not fill, UnavailableError.
        """
        environment, command = self.seen_by(study.name, record)
        return Launch(
            command,
            self.spool,
            workload=self.workload,
            tags={"study": study.name, "trial": record.trial_id},
            agent_seconds=self.agent_seconds,
            injects=self.injects,
            step_lines=self.step_lines,
            environment=environment,
            configuration=record.trial.configuration,
            run_id=run_id,
            orphan_seconds=self.orphan_seconds,
        )

    def seen_by(self, study: str, record: TrialRecord) -> tuple[dict[str, str], tuple[str, ...]]:
        """The variables that tell the program its configuration, and its command line.

        Raises: InvalidInputError, UnavailableError.
        """
        names, configuration = self.names(study, record), record.trial.configuration
        command = filled(self.command, configuration, names)
        if config_file := names.get(CONFIG_FILE):
            write_config(Path(config_file), configuration)
        context = {VARIABLE: context_text(self.context)} if self.context else {}
        return variables(configuration, self.exports) | _environment(names) | context, command

    def names(self, study: str, record: TrialRecord) -> dict[str, str]:
        """Return what a command may ask for beside the parameters: trial, study, checkpoint and config_file."""
        names = {"trial": record.trial_id, "study": study, "owner": record.owner or ""}
        if checkpoint := record.checkpoint or self._path(self.checkpoint, record):
            names[CHECKPOINT] = checkpoint
        if config_file := self._path(self.config_file, record):
            names[CONFIG_FILE] = config_file
        return names

    def check_names(self, study: Study) -> None:
        """Refuse a command that no trial of the study can fill. Raises: InvalidInputError."""
        further = {"trial", "study", "owner", CHECKPOINT}  # a trial may be resumed with a checkpoint
        check_names(self.command, study.parameter_names, further | ({CONFIG_FILE} if self.config_file else set()))

    def result_file(self, record: TrialRecord) -> Path | None:
        """The file that the program writes its result to."""
        path = self._path(self.objective_from, record)
        return Path(path) if path else None

    def _path(self, template: str | None, record: TrialRecord) -> str | None:
        if template is None:
            return None
        [path] = filled([template], record.trial.configuration, {"trial": record.trial_id})
        return str(Path(path).absolute())


@dataclass(frozen=True)
class Ended:
    """The end of a trial, and the exit code that says so; no more trials are wanted where `is_leaving`.

    `fault` says what is wrong with the command where that ended it, and not the configuration.
    """

    exit_code: int
    result: TrialResult | None
    is_leaving: bool = False
    fault: str = ""


@dataclass
class Evaluation:
    """Evaluates trials of one study."""

    service: StudyService
    study: Study
    program: Program
    holder: Lease
    outbox: Outbox
    limit_seconds: float | None = None
    grace_seconds: float = 20.0
    stops_early: bool = False
    store: Callable[[], None] = lambda: None
    doubts: Callable[[], Doubts] | None = None  # of a trial; None believes whatever was measured
    _reporting: threading.Lock = field(default_factory=threading.Lock)
    _reported: set[str] = field(default_factory=set)

    def evaluate(self, record: TrialRecord, run_id: str | None = None) -> Ended:
        """Runs a trial's program and tells what came of it.

        Raises: InvalidInputError where it cannot be started; the trial is given back then.
        """
        doubts = self.doubts() if self.doubts else None
        ended = self._attempt(record, run_id or new_ulid(), doubts)
        while ended is None:
            ended = self._attempt(record, new_ulid(), doubts)
        return ended

    def _attempt(self, record: TrialRecord, run_id: str, doubts: Doubts | None) -> Ended | None:
        """Runs the program once; None where it is to be measured again, and nothing is reported yet."""
        with self._giving_back(record):
            watch = self._watch(record, run_id)
        with watch.noting_signals():
            with self._giving_back(record):
                ended = self._run(record, run_id, watch)
            if doubts:
                self.store()  # first: there stands what disturbed it
                if doubts.wants_again(ended.result) and not watch.is_leaving:
                    return None
                ended = _believed(ended, doubts)
            if ended.result:
                self._report(ended.result)
            if ended.fault and record.trial.configuration in self.study.start:
                self._enqueue_again(record)
            if not doubts:
                self.store()
            return replace(ended, is_leaving=watch.is_leaving)

    def _enqueue_again(self, record: TrialRecord) -> None:
        """Let a configuration of the study's start wait for a command without the fault."""
        with suppress(ProjectError):
            self.service.retry(self.study.study_id, record.trial_id)

    @contextmanager
    def _giving_back(self, record: TrialRecord) -> Iterator[None]:
        """Give a trial back that cannot be started, or is interrupted before."""
        try:
            yield
        except (ProjectError, KeyboardInterrupt):
            self.give_back(record)
            raise

    def give_back(self, record: TrialRecord) -> None:
        """Gives a trial back that was not begun."""
        self._report(TrialResult(self.study.study_id, record.trial_id, None, owner=record.owner))

    def _watch(self, record: TrialRecord, run_id: str) -> Watch:
        holder = replace(self.holder, owner=record.owner or self.holder.owner)
        return Watch(
            lambda: self.service.heartbeat(self.study.study_id, record.trial_id, holder),
            self.holder.seconds / 4,
            self.limit_seconds,
            self.grace_seconds,
            lambda: self._report(self._back(record)),
            self._surely_worse(record, run_id) if self.stops_early else None,
        )

    def _surely_worse(self, record: TrialRecord, run_id: str) -> Callable[[], str | None]:
        try:
            from crosswind.cli.verbs.tune.execution.early import surely_worse  # noqa: PLC0415 - needs numpy, which a plain node lacks
        except ImportError as error:
            raise UnavailableError("--stop-early needs numpy: pip install crosswind[server] on this node") from error
        try:
            best = self.service.status(self.study.study_id).best
        except UnavailableError:  # nobody to be compared with can be asked for
            best = None
        return surely_worse(self.study, best, record, spool=self.program.spool, run_id=run_id)

    def _run(self, record: TrialRecord, run_id: str, watch: Watch) -> Ended:
        result_path = self.program.result_file(record)
        if result_path:
            result_path.unlink(missing_ok=True)  # of an earlier attempt
        if watch.preempted_by is not None:
            return Ended(LATER, self._back(record))
        wanted = replace(
            self.program.launch_of(self.study, record, run_id), on_start=watch.started, on_signal=watch.heard
        )
        pattern = self.program.pattern if result_path is None else None
        with watch.watching(), listening(pattern, self.study.objective) if pattern else nullcontext() as heard:
            outcome = launch(wanted)
        return self._ended(record, outcome, watch, heard)

    def _ended(self, record: TrialRecord, outcome: Outcome, watch: Watch, heard: Matches | None) -> Ended:
        if watch.lost:
            _say(f"trial {record.trial_id} is not ours any more: {watch.lost}")
            return Ended(LATER, None)
        if watch.preempted_by is not None:
            return Ended(LATER, self._back(record))
        stops_itself = outcome.exit_code == STOPPED and STOPPED not in self.program.infeasible
        if watch.stopped_because or stops_itself:
            reason = watch.stopped_because or "the program stopped early"
            return Ended(STOPPED, self._without(record, TrialState.PRUNED, reason))
        if outcome.exit_code != 0:
            return self._broken(record, outcome)
        return self._measured(record, outcome, heard)

    def _broken(self, record: TrialRecord, outcome: Outcome) -> Ended:
        """The end of a program that said so by its exit code."""
        exit_code, infeasible = outcome.exit_code, self.program.infeasible
        fault = fault_of_command(
            self.program.seen_by(self.study.name, record)[1],
            exit_code,
            has_steps=bool(step_seconds(self.program.spool, outcome.run_id)),
            ever_measured=self._ever_measured(),
            infeasible=infeasible,
        )
        state = TrialState.INFEASIBLE if exit_code in infeasible else TrialState.FAILED
        code = FAILED if exit_code in OURS else exit_code
        return Ended(code, self._without(record, state, f"exit code {exit_code}", fault), fault=fault)

    def _ever_measured(self) -> bool:
        """Return whether a trial of the study has an objective; in doubt there is one."""
        try:
            return self.service.status(self.study.study_id).counts[TrialState.DONE] > 0
        except UnavailableError:
            return True

    def _measured(self, record: TrialRecord, outcome: Outcome, heard: Matches | None) -> Ended:
        outcomes: dict[str, float] = {}
        try:
            outcomes = {"run_seconds": outcome.seconds, **step_outcomes(self.program.spool, outcome.run_id)}
            outcomes |= self._reported_by_program(record, heard)
            outcomes = outcomes_with(outcomes, self.program.context)  # whatever the program says
            unheard = heard.fault("standard output") if heard else ""
            objective = judged(self.study, record.trial.configuration, outcomes, unheard or ADVICE)
        except ProjectError as error:
            is_told = is_reported(self.study, record.trial.configuration, outcomes) or self._ever_measured()
            fault = "" if is_told else "no trial of the study has had an objective yet"
            return Ended(FAILED, self._without(record, TrialState.FAILED, str(error), fault), fault=fault)
        done = TrialResult(self.study.study_id, record.trial_id, TrialState.DONE, objective, owner=record.owner)
        finite = {name: value for name, value in outcomes.items() if math.isfinite(value)}
        return Ended(OK, replace(done, run_id=outcome.run_id, outcomes=finite))

    def _reported_by_program(self, record: TrialRecord, heard: Matches | None) -> Mapping[str, float]:
        """Return the numbers that the program told, some of which may be nan."""
        if result_path := self.program.result_file(record):
            return outcomes_in(result_path, self.study.objective, self.program.pattern)
        return heard.numbers if heard else {}

    def _without(self, record: TrialRecord, state: TrialState, reason: str, fault: str = "") -> TrialResult:
        """The end without an objective; one by a fault of the command is not charged."""
        text = f"{reason}: {fault}; the budget does not count it" if fault else reason
        result = TrialResult(self.study.study_id, record.trial_id, state, owner=record.owner, charged=not fault)
        return replace(result, reason=fitting_reason(text, self.program.context))

    def _back(self, record: TrialRecord) -> TrialResult:
        """The trial given back, with the checkpoint if the program has left one."""
        named = self.program.names(self.study.name, record).get(CHECKPOINT)
        checkpoint = named if named and Path(named).exists() else record.checkpoint
        return TrialResult(self.study.study_id, record.trial_id, None, owner=record.owner, checkpoint=checkpoint)

    def _report(self, result: TrialResult) -> None:
        """Reports to the service once; what it does not take now is kept for the next call."""
        with self._reporting:
            if result.trial_id in self._reported:
                return
            self._reported.add(result.trial_id)
            try:
                result.to(self.service)
            except UnavailableError as error:
                _say(f"{error}: kept in {self.outbox.keep(result)}, reported by the next call")
            except InvalidInputError as error:  # a measurement that a later service may yet take
                _say(f"not reported: {error}: kept in {self.outbox.keep(result)}")
            except (ConflictError, NotFoundError) as error:
                _say(f"not reported: {error}")


def _believed(ended: Ended, doubts: Doubts) -> Ended:
    """A repeat that broke takes nothing back of what was measured before."""
    result = doubts.believed(ended.result)
    is_measured = result is not None and result.state is TrialState.DONE
    if is_measured:
        return replace(ended, exit_code=OK, result=result, fault="")
    return replace(ended, result=result)


def _environment(names: Mapping[str, str]) -> dict[str, str]:
    suffixes = {"trial": "TRIAL", "study": "STUDY", "owner": "TRIAL_OWNER", CHECKPOINT: "CHECKPOINT"}
    suffixes[CONFIG_FILE] = "CONFIG_FILE"
    return {f"CROSSWIND_{suffixes[name]}": value for name, value in names.items()}


def _say(text: str) -> None:
    sys.stderr.write(f"crosswind: {text}\n")
