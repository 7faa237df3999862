"""Conclusions from a study's trials, kept until one begins or ends: the best, the figures, whether more would gain."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.parameters import importance_plot
from crosswind.dashboards.figures.search.charts import StudyCharts
from crosswind.dashboards.figures.search.front import front_plot
from crosswind.dashboards.figures.trials import trial_values
from crosswind.dashboards.figures.weights import source_weights
from crosswind.dashboards.wording import count
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Study, StudyState, TrialRecord, TrialState
from crosswind.data.store.store import Store
from crosswind.models.tuner.evidence.importance import FEWEST
from crosswind.models.tuner.search.enough import Prospect, measured_min, prospect_of, share_words
from crosswind.models.tuner.search.growing import settled_study
from crosswind.models.tuner.service.rules import status_of
from crosswind.models.tuner.service.service import StudyStatus

Stamp = tuple[tuple[str, int], ...]  # trials by state
POINTS = 150  # of a figure of parameters: a page is some 30 KB
PANELS = 6  # parameters that are drawn, the most important first
KEEP_SECONDS = 3600.0  # whatever else is stored: the stamp tells what changes an insight


@dataclass(frozen=True)
class Insight:
    """Conclusions from the trials: the best of them, the figures, and the prospect of more, None if unknown."""

    status: StudyStatus
    prospect: Prospect | None = None
    charts: tuple[Chart, ...] = ()
    keep_seconds: float = KEEP_SECONDS


def stamp_of(counts: Mapping[TrialState, int]) -> Stamp:
    """Return what changes with every trial that begins or ends."""
    return tuple((str(state), number) for state, number in counts.items())


def insight(store: Store, study_id: str, stamp: Stamp) -> Insight:
    """Return the conclusions from a study's trials as `stamp` counts them; it tells the cache that there are more."""
    with store.catalog.read() as session:
        study, records = session.studies.get(study_id), session.leases.records(study_id)
    status = status_of(study, records, time.time_ns, looks_ahead=False)
    if dict(stamp).get(TrialState.DONE, 0) < FEWEST:
        return Insight(status, None, _charts(study, records, {}))
    try:
        importance = StudyCharts(study, records).importances()
    except InvalidInputError:  # too few trials fit a space that has grown
        importance = {}
    return Insight(status, _prospect(study, records), _charts(study, records, importance))


def unit_of(study: Study) -> str:
    """Return the unit of the objective in full."""
    return "seconds" if study.unit == "s" else study.unit


def _prospect(study: Study, records: Sequence[TrialRecord]) -> Prospect | None:
    if study.objectives or study.limits:
        return None
    return prospect_of(*(settled_study(study, records) if study.define_by_run else (study, records)))


def _charts(study: Study, records: Sequence[TrialRecord], importance: Mapping[str, float]) -> tuple[Chart, ...]:
    """Return the front, the progress, what the parameters do, and the sources."""
    values = trial_values(study, records, unit_of(study))
    if values is None:
        return ()
    charts: list[Chart | None] = [front_plot(study, records), values]
    if importance:
        names = tuple(importance)[:PANELS]
        drawn = StudyCharts(study, records, points=POINTS)
        charts.append(importance_plot(study.objective, importance, len(values.values)))
        charts += [drawn.slices(names), drawn.parallel(names)]
    charts.append(source_weights(records))
    return tuple(chart for chart in charts if chart)


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
        f" Another trial would be expected to gain {share_words(prospect.gain)}, {is_more} than the noise of "
        f"{share_words(prospect.noise)}."
    )


def _progress_words(study: Study, status: StudyStatus, prospect: Prospect | None) -> str:
    if status.is_exhausted and not status.enough:
        words = "Done: its hours are over." if status.is_over else "Done: the budget is spent."
        return f"{words}{_missed_words(prospect)}"
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
