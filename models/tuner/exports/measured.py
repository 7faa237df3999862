"""The objectives of a study's trials with the sign that people measured."""

import re

from crosswind.data.schema.trial import Study, TrialRecord
from crosswind.models.tuner.study.aim import Aim

NAMES = {False: "minimise", True: "maximise"}
TURNED = re.compile(r"-([A-Za-z_][\w./-]*)")  # as readers of other tools' files name what these maximised


def directions(study: Study) -> list[bool]:
    """Return whether larger is better, one for each objective."""
    goal = Aim.of(study).goal
    if goal:
        return [objective.is_maximised for objective in goal.objectives]
    return [study.is_maximised or _is_turned(study)]


def metrics(study: Study) -> list[str]:
    """Return the names or expressions of the objectives."""
    goal = Aim.of(study).goal
    if goal:
        return [objective.expression.text for objective in goal.objectives]
    return [study.objective.removeprefix("-") if _is_turned(study) else study.objective]


def measured(study: Study, record: TrialRecord) -> list[float] | None:
    """Return the objectives of a complete trial; None where it has not all of them."""
    judgement = Aim.of(study).judge(record)
    if judgement is None:
        return None
    signs = [-1 if is_maximised else 1 for is_maximised in directions(study)]
    return [sign * value for sign, value in zip(signs, judgement.objectives, strict=True)]


def _is_turned(study: Study) -> bool:
    return not study.is_maximised and TURNED.fullmatch(study.objective) is not None
