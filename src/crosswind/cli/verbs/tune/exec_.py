"""`crosswind tune exec STUDY -- CMD`: asks for a trial, runs it, records it, and tells what came of it."""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from crosswind.cli.text.output import say_json
from crosswind.cli.verbs.tune.asker import asking_process
from crosswind.cli.verbs.tune.context import context_in, suggesting
from crosswind.cli.verbs.tune.execution import ranks
from crosswind.cli.verbs.tune.execution.doubts import Doubts
from crosswind.cli.verbs.tune.execution.evaluation import LATER, OK, USED_UP, Ended, Evaluation, Program
from crosswind.cli.verbs.tune.execution.objective_output import compiled
from crosswind.cli.verbs.tune.execution.records import records_of
from crosswind.cli.verbs.tune.execution.watch import noted_signals
from crosswind.cli.verbs.tune.exhausted import nothing_more
from crosswind.cli.verbs.tune.filling import exports_of
from crosswind.cli.verbs.tune.outbox import Outbox
from crosswind.cli.verbs.tune.paused import once_resumed
from crosswind.cli.verbs.tune.prefetch import Prefetch
from crosswind.cli.verbs.tune.source_words import say_first
from crosswind.cli.verbs.tune.trial_table import with_unit
from crosswind.cli.verbs.tune.where import place_of, service_at
from crosswind.data.schema.errors import InvalidInputError, PausedError, ProjectError, UnavailableError
from crosswind.data.schema.run import new_ulid
from crosswind.data.schema.trial import Study, Trial, TrialRecord, TrialState
from crosswind.ingest.injected import injected
from crosswind.models.tuner.service.service import COUNT_MAX, Lease, StudyService, Suggest
from crosswind.settings import Settings

WRONG = 2
FAULTS_MAX = 3  # trials in a row that a fault of the command ended


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Evaluates trials: 0 done, 3 stopped early, 4 budget spent, 75 given back or no answer, else as the program."""
    if arguments.trials < 1:
        raise InvalidInputError(f"--trials is {arguments.trials}, expected 1 or more")
    if not 0 <= arguments.ahead <= COUNT_MAX:
        raise InvalidInputError(f"--ahead is {arguments.ahead}, expected 0 to {COUNT_MAX}")
    if arguments.ahead and arguments.context:
        raise InvalidInputError(f"--ahead is {arguments.ahead}, expected 0 beside --context: a trial is for one input")
    program, rank = program_of(arguments, settings), ranks.rank_of_step()
    if rank is None:
        return _evaluate(arguments, settings, program, None)
    if arguments.trials > 1:
        raise InvalidInputError(f"--trials is {arguments.trials}, expected 1 where every rank of a step calls")
    answer = ranks.answer_file(_shared_folder(arguments, settings))
    if rank == 0:
        return _evaluate(arguments, settings, program, answer)
    return _follow(program, ranks.wait_for_answer(answer, arguments.wait), arguments.study)


def program_of(arguments: argparse.Namespace, settings: Settings) -> Program:
    """Return the program that the arguments describe. Raises: InvalidInputError."""
    return Program(
        tuple(arguments.command),
        settings.spool,
        workload=arguments.workload,
        exports=exports_of(arguments.export),
        config_file=arguments.config_file,
        checkpoint=arguments.checkpoint or os.environ.get("CROSSWIND_CHECKPOINT"),
        objective_from=arguments.objective_from,
        pattern=compiled(arguments.objective_pattern) if arguments.objective_pattern else None,
        context=context_in(arguments.context) if arguments.context else {},
        infeasible=frozenset(arguments.infeasible),
        agent_seconds=None if arguments.no_agent else arguments.interval,
        step_lines=arguments.step_lines,
        injects=not arguments.no_inject,
        orphan_seconds=arguments.grace,
    )


def _evaluate(arguments: argparse.Namespace, settings: Settings, program: Program, answer: Path | None) -> int:
    """Evaluates trials one after another; the other ranks of the step, if there are any, get them too."""
    place = place_of(arguments)
    try:
        with asking_process(arguments.lease) as holder, service_at(place, settings) as service:
            outbox = Outbox.below(settings.spool, place)
            ahead = Prefetch.below(settings.spool, place, arguments.ahead)
            study, first = _begun(service, outbox, ahead, arguments.study)
            evaluation = Evaluation(service, study, _with_command(program, study), holder, outbox)
            evaluation.limit_seconds, evaluation.grace_seconds = arguments.limit, arguments.grace
            evaluation.stops_early = arguments.stop_early
            if not arguments.no_ingest:
                records = records_of(place, settings, service, study)
                evaluation.store = records.keep
                if answer is None and not arguments.believe:  # other ranks learn of one run alone
                    evaluation.doubts = lambda: Doubts(records.judge)
            suggest = suggesting(program.context, place, settings) if program.context else service.suggest
            trials = _handed_out(evaluation, ahead, suggest, first, waits=answer is None)
            return _one_after_another(evaluation, trials, arguments, answer)
    except ProjectError as error:
        if answer:
            is_for_later = isinstance(error, UnavailableError | PausedError)
            ranks.leave(answer, ranks.Answer(LATER if is_for_later else WRONG))
        raise


def _begun(service: StudyService, outbox: Outbox, ahead: Prefetch, name: str) -> tuple[Study, TrialRecord | None]:
    """The study; and, where no service answers, a trial that was leased beforehand. Raises: what the service raises."""
    try:
        _send(outbox, service)
        return service.status(name).study, None
    except UnavailableError as error:
        if (kept := ahead.take(name)) is None:
            raise
        sys.stderr.write(f"crosswind: {error}: going on with a trial leased beforehand\n")
        return kept.study, kept.record


def _with_command(program: Program, study: Study) -> Program:
    """The program with the study's own command where none is given. Raises: InvalidInputError without either."""
    command = program.command or study.command
    if not command:
        raise InvalidInputError(
            "tune exec: expected a program after --, as in crosswind tune exec STUDY -- ./train {lr}"
        )
    with_command = replace(program, command=command)
    with_command.check_names(study)
    return with_command


def _send(outbox: Outbox, service: StudyService) -> None:
    """Tells what waits, before anything is asked: a service that lacks a result would hand its trial out again."""
    for problem in outbox.send(service):
        sys.stderr.write(f"crosswind: {problem}\n")


def _handed_out(
    evaluation: Evaluation, ahead: Prefetch, suggest: Suggest, first: TrialRecord | None, *, waits: bool
) -> Iterator[TrialRecord]:
    """The first trial if it is there already, then what the service hands out, each when it is asked for.

    While the study is paused it waits, unless other ranks wait for it.
    """

    def suggested(study: str, count: int, lease: Lease) -> list[TrialRecord]:
        _send(evaluation.outbox, evaluation.service)
        return suggest(study, count, lease)

    def ask() -> TrialRecord | None:
        return ahead.next_trial(evaluation.service, suggested, evaluation.study, evaluation.holder)

    def following() -> TrialRecord | None:
        with noted_signals() as numbers:
            record = once_resumed(ask, goes_on=lambda: not numbers, say=_say_waiting) if waits else ask()
            if numbers and record:
                evaluation.give_back(record)
        if numbers:
            raise UnavailableError(f"interrupted by signal {numbers[0]} before a program was started")
        return record

    record = first or following()
    while record is not None:
        yield record
        record = following()


def _say_waiting(reason: str) -> None:
    sys.stderr.write(f"crosswind: {reason}: waiting\n")


def _one_after_another(
    evaluation: Evaluation, trials: Iterable[TrialRecord], arguments: argparse.Namespace, answer: Path | None
) -> int:
    code, faults = None, 0
    for record in islice(trials, arguments.trials):
        if code is None:
            say_first(evaluation.service, evaluation.study.name, [record])
        run_id = new_ulid()
        if answer:
            ranks.leave(answer, _answer(evaluation, record, run_id))
        ended = evaluation.evaluate(record, run_id)
        _say(evaluation.study, record, ended, as_json=arguments.json)
        code = ended.exit_code
        if ended.is_leaving or code == LATER:
            break
        faults = faults + 1 if ended.fault else 0
        if faults == FAULTS_MAX:
            sys.stderr.write(f"crosswind: {FAULTS_MAX} trials in a row: {ended.fault}: no more are run\n")
            return WRONG
    if code is not None:
        return code
    if answer:
        ranks.leave(answer, ranks.Answer(USED_UP))
    sys.stderr.write(f"crosswind: {nothing_more(evaluation.service, evaluation.study.name)}\n")
    return USED_UP


def _answer(evaluation: Evaluation, record: TrialRecord, run_id: str) -> ranks.Answer:
    configuration, command = record.trial.configuration, evaluation.program.command
    return ranks.Answer(None, record.trial_id, configuration, run_id, record.checkpoint, command)


def _follow(program: Program, answer: ranks.Answer, study: str) -> int:
    """Becomes the program of a rank that rank 0 has asked for; returns only where there is none."""
    if answer.exit_code is not None or answer.configuration is None:
        return answer.exit_code or OK
    trial = Trial(answer.configuration, TrialState.LEASED, None, answer.trial_id)
    record = TrialRecord(trial, study, checkpoint=answer.checkpoint)
    environment, command = replace(program, command=tuple(answer.command)).seen_by(study, record)
    environment = os.environ | environment | {"CROSSWIND_RUN_ID": answer.run_id, "CROSSWIND_SPOOL": str(program.spool)}
    environment |= injected(environment) if program.injects else {"CROSSWIND_INJECT": "0"}
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606 - the user's program takes this rank's place
    except OSError as error:
        raise InvalidInputError(f"run: {command[0]!r} cannot be started: {error}") from error


def _shared_folder(arguments: argparse.Namespace, settings: Settings) -> Path:
    """A folder that every rank of the step sees."""
    if arguments.shared:
        return Path(arguments.shared)
    kind, address = place_of(arguments)
    return Path(address) if kind == "folder" else settings.home / "tune"


def _say(study: Study, record: TrialRecord, ended: Ended, *, as_json: bool) -> None:
    result = ended.result
    state = "lost" if result is None else "given back" if result.state is None else str(result.state)
    objective = None if result is None or result.objective is None else study.signed(result.objective)
    if as_json:
        words = {"trial_id": record.trial_id, "configuration": record.trial.configuration, "state": state}
        say_json(
            words | {"objective": objective, "exit_code": ended.exit_code, "run_id": result.run_id if result else None}
        )
        return
    measured = f", objective {with_unit(study, objective)}" if objective is not None else ""
    reason = f": {result.reason}" if result and result.reason else ""
    sys.stderr.write(f"crosswind: trial {record.trial_id} {state}{measured}{reason}\n")
