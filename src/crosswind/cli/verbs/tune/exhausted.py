"""The reason why a study hands out nothing more, and what to do."""

import time

from crosswind.data.schema.errors import ProjectError
from crosswind.data.schema.trial import StudyState, TrialState
from crosswind.models.tuner.service.service import StudyService, StudyStatus


def nothing_more(service: StudyService, study: str) -> str:
    """Return one sentence on a study whose service handed nothing out."""
    try:
        return f"study {study} has nothing more to try: {_reason(service.status(study))}"
    except ProjectError:  # it answered a moment ago
        return f"study {study} has nothing more to try: budget or space are used up"


def _reason(status: StudyStatus) -> str:
    study, budget = status.study, status.study.trials_max
    leased = status.counts.get(TrialState.LEASED, 0)
    running = f" ({leased} still running)" if leased else ""
    extend = f"crosswind tune extend {study.name}"
    if study.state is StudyState.STOPPED:
        return f"it was stopped{running}; crosswind tune resume {study.name} goes on"
    if status.enough:
        return f"{status.enough}{running}"
    if status.is_over or study.is_over(time.time_ns()):
        return f"its hours are over{running}; {extend} --hours N adds some"
    if budget is not None and status.charged >= budget:
        return f"its budget of {budget} trials is used up{running}; {extend} --trials N adds some"
    return f"its space has no configuration left beside the {sum(status.counts.values())} begun{running}"
