"""Trials in a job script: next, beat, tell, release; nothing heavy is imported where a server is asked."""

import argparse
import math
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace

from crosswind.cli.text.output import say, say_json
from crosswind.cli.verbs.tune.asker import holder
from crosswind.cli.verbs.tune.context import VARIABLE, context_in, reported_context, suggesting
from crosswind.cli.verbs.tune.exhausted import nothing_more
from crosswind.cli.verbs.tune.filling import variables
from crosswind.cli.verbs.tune.outbox import Outbox, TrialResult
from crosswind.cli.verbs.tune.source_words import say_first
from crosswind.cli.verbs.tune.trial_table import trial_table
from crosswind.cli.verbs.tune.where import place_of, service_at
from crosswind.data.schema.context import context_text, fitting_reason, outcomes_with
from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.schema.trial import TrialRecord, TrialState
from crosswind.models.tuner.service.service import StudyService
from crosswind.settings import Settings

OK, USED_UP = 0, 4
OWNER = "CROSSWIND_TRIAL_OWNER"
ENDINGS = {"failed": TrialState.FAILED, "infeasible": TrialState.INFEASIBLE, "pruned": TrialState.PRUNED}


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Does the action: 0 done, 4 the budget or the space is used up."""
    place = place_of(arguments)
    outbox = Outbox.below(settings.spool, place)
    with service_at(place, settings) as service:
        if arguments.action in RESULTS:
            return _reported(arguments, service, outbox)
        for problem in outbox.send(service):
            sys.stderr.write(f"crosswind: {problem}\n")
        if arguments.action == "beat":
            return _beat(arguments, service)
        asked = (arguments.study, arguments.count, holder(arguments.lease, arguments.slot))
        suggest = suggesting(context_in(arguments.context), place, settings) if arguments.context else service.suggest
        handed_out = suggest(*asked)
        say_first(service, arguments.study, handed_out)
        return _next(arguments, handed_out, lambda: nothing_more(service, arguments.study))


def _next(arguments: argparse.Namespace, handed_out: list[TrialRecord], why_none: Callable[[], str]) -> int:
    if arguments.json:
        is_next = arguments.action == "next"
        say_json([record.as_json() if is_next else record.as_nested_json() for record in handed_out])
    elif not handed_out:
        sys.stderr.write(f"crosswind: {why_none()}\n")
    elif arguments.format == "env":
        exported = _environment(handed_out[0], arguments.context)
        say("\n".join(f"export {name}={shlex.quote(value)}" for name, value in exported.items()))
    else:
        say(trial_table(handed_out))
    return OK if handed_out else USED_UP


def _environment(record: TrialRecord, context: str | None) -> dict[str, str]:
    named = {"CROSSWIND_TRIAL": record.trial_id, OWNER: record.owner, "CROSSWIND_CHECKPOINT": record.checkpoint}
    named |= {VARIABLE: context_text(context_in(context)) if context else None}
    return {name: text for name, text in named.items() if text} | variables(record.trial.configuration, {})


def _beat(arguments: argparse.Namespace, service: StudyService) -> int:
    asking = holder(arguments.lease, "")
    owner = _owner(arguments) or asking.owner
    _say([service.heartbeat(arguments.study, arguments.trial, replace(asking, owner=owner))], arguments)
    return OK


def _reported(arguments: argparse.Namespace, service: StudyService, outbox: Outbox) -> int:
    """Reports; what is not taken now is kept and reported by the next call."""
    result = RESULTS[arguments.action](arguments)
    try:
        for problem in outbox.send(service):
            sys.stderr.write(f"crosswind: {problem}\n")
        record = result.to(service)
    except UnavailableError as error:
        sys.stderr.write(f"crosswind: {error}: kept in {outbox.keep(result)}, reported by the next call\n")
        return OK
    _say([record], arguments)
    return OK


def _result(arguments: argparse.Namespace) -> TrialResult:
    ends = [(state, reason) for name, state in ENDINGS.items() if (reason := getattr(arguments, name)) is not None]
    value = arguments.objective
    if len(ends) + (value is not None) != 1:
        raise InvalidInputError("tell: expected either an objective or one of --failed, --infeasible, --pruned")
    [(state, reason)] = ends or [(TrialState.DONE, None)]
    if value is not None and not math.isfinite(value):
        raise InvalidInputError(f"objective is {value}, expected a finite number, or --failed REASON")
    if value is not None and arguments.uncharged:
        raise InvalidInputError("tell: --uncharged stands beside an objective, expected it beside --failed or the like")
    result, context = _ended(arguments, state), reported_context(arguments)
    return replace(
        result,
        objective=value,
        reason=reason if value is not None else fitting_reason(reason or str(state), context),
        run_id=arguments.run,
        outcomes=outcomes_with(_outcomes(arguments.outcome), context if value is not None else {}),
        as_measured=value is not None,
        charged=not arguments.uncharged,
    )


def _fail(arguments: argparse.Namespace) -> TrialResult:
    reason = fitting_reason(arguments.reason, reported_context(arguments))
    return replace(_ended(arguments, TrialState.FAILED), reason=reason, charged=not arguments.uncharged)


def _release(arguments: argparse.Namespace) -> TrialResult:
    return replace(_ended(arguments, None), checkpoint=arguments.checkpoint)


def _ended(arguments: argparse.Namespace, state: TrialState | None) -> TrialResult:
    return TrialResult(arguments.study, arguments.trial, state, owner=_owner(arguments))


RESULTS: Mapping[str, Callable[[argparse.Namespace], TrialResult]] = {
    "tell": _result,
    "complete": _result,
    "fail": _fail,
    "release": _release,
}


def _outcomes(words: list[str]) -> dict[str, float]:
    """Numbers by name. Raises: InvalidInputError."""
    outcomes: dict[str, float] = {}
    for word in words:
        name, _, text = word.partition("=")
        try:
            outcomes[name] = float(text)
        except ValueError as error:
            raise InvalidInputError(f"--outcome {word[:80]!r}: expected NAME=NUMBER") from error
        if not name or not math.isfinite(outcomes[name]):
            raise InvalidInputError(f"--outcome {word[:80]!r}: expected a name and a finite number")
    return outcomes


def _owner(arguments: argparse.Namespace) -> str | None:
    return arguments.owner or os.environ.get(OWNER) or None


def _say(records: list[TrialRecord], arguments: argparse.Namespace) -> None:
    if arguments.json:
        say_json([record.as_nested_json() for record in records])
    else:
        say(trial_table(records))
