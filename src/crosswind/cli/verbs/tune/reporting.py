"""Intermediate values of running trials from a job script: report."""

import argparse
import math
import os
import sys

from crosswind.cli.text.output import say_json
from crosswind.cli.verbs.tune.trials import OWNER
from crosswind.cli.verbs.tune.where import place_of, service_at
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.report import Report
from crosswind.models.tuner.service.service import StudyService
from crosswind.settings import Settings

OK, STOP = 0, 3


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Does the action: 0 to go on, 3 where the trial should stop."""
    with service_at(place_of(arguments), settings) as service:
        reason = _reason(arguments, service)
    if arguments.json:
        say_json({"stop": bool(reason), "reason": reason or None})
    elif reason:
        sys.stderr.write(f"crosswind: trial {arguments.trial} should stop: {reason}\n")
    return STOP if reason else OK


def _reason(arguments: argparse.Namespace, service: StudyService) -> str:
    """Report the value; return in words why the trial should stop, empty to go on."""
    if arguments.step < 0:
        raise InvalidInputError(f"--step is {arguments.step}, expected 0 or more")
    if not math.isfinite(arguments.value):  # a training that diverged: no other value comes after it
        return f"at step {arguments.step} its value is {arguments.value}"
    study = service.status(arguments.study).study
    owner = arguments.owner or os.environ.get(OWNER) or None
    report = Report(arguments.step, study.signed(arguments.value))
    return service.report(arguments.study, arguments.trial, [report], owner=owner)
