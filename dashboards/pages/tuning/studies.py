"""The Studies page: progress of a search, its trials, and the best configuration."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.search.timeline import DRAWN, timeline
from crosswind.dashboards.pages.page import TUNING, Page, PageQuery, Place
from crosswind.dashboards.pages.tuning.insight import done_words, insight, stamp_of, unit_of
from crosswind.dashboards.wording import configuration_words, count, quantity
from crosswind.data.schema.answers.studies import StudySources
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.trial import Configuration, Study, StudyState, TrialRecord, TrialState
from crosswind.models.tuner.service.rules import status_of
from crosswind.models.tuner.service.service import HELD, OPEN, StudyStatus

STUDIES, SHOWN, MOST_SHOWN = 100, 20, 500


@dataclass(frozen=True)
class TrialRow:
    """One trial; `value` is the objective in its original sign, `number` its place in the study from 1 on."""

    number: int
    configuration: Configuration
    state: TrialState
    value: float | None
    owner: str | None
    run_id: str | None
    reason: str | None
    is_best: bool


@dataclass(frozen=True)
class StudiesView:
    """The page's contents; `rows` are the newest of the study's `trials`, `sources` have the weights of the newest.

    `objectives` are those of a study that has several.
    """

    sentence: str
    done: str
    studies: tuple[str, ...]
    selected: str | None
    state: StudyState | None
    objective: str
    unit: str
    trials: int
    ended: int
    running: int
    budget: int | None
    outside: int
    created_ns: int | None
    best: Configuration | None
    rows: tuple[TrialRow, ...]
    charts: tuple[Chart, ...]
    sources: StudySources = field(default_factory=StudySources)
    wants_no_sources: bool = False
    objectives: tuple[str, ...] = ()
    next_place: Place | None = None

    title = "Studies"

    @property
    def is_empty(self) -> bool:
        """Return whether too little is stored for the page."""
        return self.selected is None


EMPTY = StudiesView("", "", (), None, None, "", "", 0, 0, 0, None, 0, None, None, (), ())


def view(client: Local, query: PageQuery) -> StudiesView:
    """Return the newest studies, and one of them in detail. Raises: NotFoundError."""
    limit = query.amount("limit", SHOWN, most=MOST_SHOWN)
    with client.store.catalog.read() as session:
        newest = session.studies.all()[:STUDIES]
    study = _selected(newest, query.word("study"), client)
    if study is None:
        return EMPTY
    with client.store.catalog.read() as session:
        counts = session.leases.states(study.study_id)
        records = session.leases.newest(study.study_id, max(limit, DRAWN))
        held = session.leases.records(study.study_id, HELD)
        sources = session.studies.sources(study.study_id)
        runs = session.runs.some({record.run_id for record in records[-DRAWN:] if record.run_id})
    judged = client.compute(client.store, insight, study.study_id, stamp_of(counts))
    now = status_of(study, [*held, *records], time.time_ns, sources, looks_ahead=False)
    status = replace(judged.status, study=study, counts=counts, is_over=now.is_over, sources=now.sources)
    if study.stop and judged.prospect and judged.prospect.is_enough:
        status = replace(status, enough=judged.prospect.sentence)
    best, trials = status.best, sum(counts.values())
    first = trials - len(records) + 1
    over_time = timeline(records, {run.run_id: run for run in runs}, time.time_ns(), first=first)
    return StudiesView(
        sentence=_sentence(study, status),
        done=done_words(study, status, judged.prospect),
        studies=tuple(sorted({recent.name for recent in newest} | {study.name})),
        selected=study.name,
        state=study.state,
        objective=study.objective,
        objectives=study.objectives,
        unit=unit_of(study),
        trials=trials,
        ended=sum(number for state, number in counts.items() if state not in OPEN),
        running=counts[TrialState.LEASED],
        budget=study.trials_max,
        outside=status.outside,
        created_ns=study.created_ns,
        best=None if best is None else best.trial.configuration,
        rows=_rows(study, records, best, first)[::-1][:limit],
        charts=(*judged.charts, over_time) if over_time else judged.charts,
        sources=status.sources,
        wants_no_sources=study.sources == (),
    )


PAGE = Page(
    "studies",
    "/studies",
    "studies.html",
    view,
    TUNING,
    label="Studies",
    table="rows",
    fill="crosswind tune create STUDY.yaml",
    hint="Begin a search",
)


def _selected(newest: Sequence[Study], wanted: str | None, client: Local) -> Study | None:
    if wanted is None:
        return newest[0] if newest else None
    with client.store.catalog.read() as session:
        try:
            return session.studies.get(wanted)
        except NotFoundError:
            raise NotFoundError(f"study {wanted[:60]!r} is not in the catalog") from None


def _rows(study: Study, records: Sequence[TrialRecord], best: TrialRecord | None, first: int) -> tuple[TrialRow, ...]:
    """Return the records as rows, of which the oldest is the study's trial number `first`."""
    best_id = best.trial.trial_id if best else None
    return tuple(
        TrialRow(
            number=number,
            configuration=record.trial.configuration,
            state=record.trial.state,
            value=None if record.trial.objective is None else study.signed(record.trial.objective),
            owner=record.owner,
            run_id=record.run_id,
            reason=record.as_json()["reason"],
            is_best=record.trial.trial_id == best_id,
        )
        for number, record in enumerate(records, first)
    )


def _sentence(study: Study, status: StudyStatus) -> str:
    trials, best = sum(status.counts.values()), status.best
    if best is None or best.trial.objective is None:
        progress = f"{count(trials, 'trial')} begun" if trials else "no trial is begun yet"
        return f"{study.name}: nothing is measured yet, {progress}."
    words, value = configuration_words(best.trial.configuration), study.signed(best.trial.objective)
    if len(study.objectives) > 1:
        return _front_sentence(study, status, words, value)
    done = f"after {trials} of {study.trials_max} trials" if study.trials_max else f"after {count(trials, 'trial')}"
    is_spent = status.is_exhausted and not status.is_over
    ended = ", the budget is spent" if is_spent and not status.enough else ""
    return f"{study.name}: {words} is the best so far, {quantity(value, unit_of(study))} ({done}{ended})."


def _front_sentence(study: Study, status: StudyStatus, words: str, value: float) -> str:
    """Return the headline of a study with several objectives."""
    size = len(status.front)
    are = f"{size} trials are beaten by no other" if size > 1 else "one trial beats all others"
    return (
        f"{study.name}: {are} in {len(study.objectives)} objectives; the best in {study.objective} is "
        f"{words}, {quantity(value, unit_of(study))}."
    )
