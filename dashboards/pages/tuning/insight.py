"""Conclusions from a study's trials that take a model: whether more of them would gain, and which parameters matter."""

from dataclasses import dataclass

from crosswind.dashboards.figures.search.charts import StudyCharts
from crosswind.dashboards.wording import count
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Study, StudyState, TrialState
from crosswind.data.store.store import Store
from crosswind.models.tuner.evidence.importance import FEWEST
from crosswind.models.tuner.search.enough import Prospect, measured_min, prospect_of, share_words
from crosswind.models.tuner.search.growing import settled_study
from crosswind.models.tuner.service.service import StudyStatus

Stamp = tuple[tuple[str, int], ...]  # trials by state


@dataclass(frozen=True)
class Insight:
    """The prospect of more trials, None where it cannot be judged, and the share of each parameter, largest first."""

    prospect: Prospect | None = None
    importance: tuple[tuple[str, float], ...] = ()


NOTHING = Insight()


def stamp_of(status: StudyStatus) -> Stamp:
    """Return what changes with every trial that begins or ends."""
    return tuple((str(state), number) for state, number in status.counts.items())


def insight(store: Store, study_id: str, stamp: Stamp) -> Insight:
    """Return the conclusions from a study's trials as `stamp` counts them; it tells the cache that there are more."""
    if dict(stamp).get(TrialState.DONE, 0) < FEWEST:
        return NOTHING
    with store.catalog.read() as session:
        study, records = session.studies.get(study_id), session.leases.records(study_id)
    try:
        importance = tuple(StudyCharts(study, records).importances().items())
    except InvalidInputError:  # too few trials fit a space that has grown
        importance = ()
    if study.objectives or study.limits:
        return Insight(None, importance)
    if study.define_by_run:
        study, records = settled_study(study, records)
    return Insight(prospect_of(study, records), importance)


def done_words(study: Study, status: StudyStatus, prospect: Prospect | None) -> str:
    """Return whether the search is done, in a sentence or two."""
    if study.state is StudyState.STOPPED:
        return f"Stopped: no more trials are handed out.{_missed_words(prospect)}"
    words = _progress_words(study, status, prospect)
    return f"Paused: no trial is handed out now. {words}" if study.state is StudyState.PAUSED else words


def _missed_words(prospect: Prospect | None) -> str:
    """Return what another trial would have gained."""
    if prospect is None:
        return ""
    is_more = "less" if prospect.is_enough else "more"
    return (
        f" Another one would be expected to gain {share_words(prospect.gain)}, {is_more} than the noise of "
        f"{share_words(prospect.noise)}."
    )


def _progress_words(study: Study, status: StudyStatus, prospect: Prospect | None) -> str:
    if status.is_exhausted and not status.enough:
        return "Done: the budget is spent." if not status.is_over else "Done: its hours are over."
    if prospect is not None and prospect.is_enough:
        return f"Done: {prospect.sentence}."
    if prospect is not None:
        gains = f"the next trial is expected to gain {share_words(prospect.gain)}"
        return f"Go on: {gains}, more than the noise of {share_words(prospect.noise)}."
    if study.objectives or study.limits:
        return "No gain is computed with several objectives or limits: go on until the best or the budget is enough."
    least, done = measured_min(len(study.parameter_names)), status.counts.get(TrialState.DONE, 0)
    if done < least:
        return f"Go on: {count(done, 'trial')} measured, and {least} configurations are needed to judge what is left."
    return "Done as far as can be judged: no configuration is left that is not measured."
