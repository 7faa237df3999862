"""The Studies page: progress of a search, its trials, and the best configuration."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.trials import trial_values
from crosswind.dashboards.figures.weights import source_weights
from crosswind.dashboards.pages.page import TUNING, Page, PageQuery, Place
from crosswind.dashboards.wording import configuration_words, count, quantity
from crosswind.data.schema.answers.studies import StudySources
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.trial import Configuration, Study, TrialRecord, TrialState
from crosswind.models.tuner.service.rules import status_of
from crosswind.models.tuner.service.service import OPEN, StudyStatus

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
    """The page's contents; `rows` are the newest of the study's `trials`, `sources` have the weights of the newest."""

    sentence: str
    studies: tuple[str, ...]
    selected: str | None
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
    next_place: Place | None = None

    title = "Studies"


EMPTY = StudiesView("", (), None, "", "", 0, 0, 0, None, 0, None, None, (), ())


def view(client: Local, query: PageQuery) -> StudiesView:
    """Return the newest studies, and one of them in detail. Raises: NotFoundError."""
    limit = query.amount("limit", SHOWN, most=MOST_SHOWN)
    with client.store.catalog.read() as session:
        newest = session.studies.all()[:STUDIES]
    study = _selected(newest, query.word("study"), client)
    if study is None:
        return EMPTY
    with client.store.catalog.read() as session:
        records = session.leases.records(study.study_id)
        status = status_of(study, records, time.time_ns, session.studies.sources(study.study_id))
    values = trial_values(study, records, _unit(study))
    best = status.best
    running = status.counts.get(TrialState.LEASED, 0)
    rows = _rows(study, records, best)
    return StudiesView(
        sentence=_sentence(study, status, rows),
        studies=tuple(sorted({recent.name for recent in newest} | {study.name})),
        selected=study.name,
        objective=study.objective,
        unit=_unit(study),
        trials=len(records),
        ended=sum(number for state, number in status.counts.items() if state not in OPEN),
        running=running,
        budget=study.trials_max,
        outside=status.outside,
        created_ns=study.created_ns,
        best=None if best is None else best.trial.configuration,
        rows=rows[::-1][:limit],
        charts=tuple(chart for chart in (values, source_weights(records)) if chart),
        sources=status.sources,
        wants_no_sources=study.sources == (),
    )


PAGE = Page("studies", "/studies", "studies.html", view, TUNING, label="Studies", table="rows")


def _selected(newest: Sequence[Study], wanted: str | None, client: Local) -> Study | None:
    if wanted is None:
        return newest[0] if newest else None
    with client.store.catalog.read() as session:
        try:
            return session.studies.get(wanted)
        except NotFoundError:
            raise NotFoundError(f"study {wanted[:60]!r} is not in the catalog") from None


def _rows(study: Study, records: Sequence[TrialRecord], best: TrialRecord | None) -> tuple[TrialRow, ...]:
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
        for number, record in enumerate(records, 1)
    )


def _unit(study: Study) -> str:
    return "seconds" if study.unit == "s" else study.unit


def _sentence(study: Study, status: StudyStatus, rows: Sequence[TrialRow]) -> str:
    best = next((row for row in rows if row.is_best and row.value is not None), None)
    if best is None:
        progress = f"{count(len(rows), 'trial')} begun" if rows else "no trial is begun yet"
        return f"{study.name}: nothing is measured yet, {progress}."
    of = f" of {study.trials_max}" if study.trials_max else ""
    done = f"after {len(rows)}{of} trials" if of else f"after {count(len(rows), 'trial')}"
    ended = ", the budget is spent" if status.is_exhausted else ""
    return (
        f"{study.name}: {configuration_words(best.configuration)} is the best so far, "
        f"{quantity(best.value, _unit(study))} ({done}{ended})."
    )
