"""Intermediate values of running trials."""

from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy import Connection, delete, func, select

from crosswind.data.catalog import rows, tables
from crosswind.data.catalog.keyset import part_of
from crosswind.data.schema.part import Part
from crosswind.data.schema.report import Report, TrialReport


class Reports:
    """Intermediate values of trials, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, study_id: str, trial_id: str, reports: Sequence[Report]) -> None:
        """Store reports of a trial; one of the same step is replaced."""
        key = {"study_id": study_id, "trial_id": trial_id}
        rows.upsert_all(self._connection, tables.reports, [{**key, **report.as_json()} for report in reports])

    def count(self, trial_id: str) -> int:
        """Return how many steps of a trial were reported."""
        query = select(func.count()).where(tables.reports.c.trial_id == trial_id)
        return int(self._connection.execute(query).scalar_one())

    def of_trial(self, trial_id: str) -> list[Report]:
        """Return what a trial has reported, in the order of the steps."""
        table = tables.reports
        query = select(table.c.step, table.c.value).where(table.c.trial_id == trial_id).order_by(table.c.step)
        return [Report(step, value) for step, value in self._connection.execute(query)]

    def at_step(self, study_id: str, step: int) -> list[tuple[str, float, str]]:
        """Return trial, value and the trial's state for every report of a study at this step."""
        table, trials = tables.reports, tables.trials
        joined = table.join(trials, trials.c.trial_id == table.c.trial_id)
        query = select(table.c.trial_id, table.c.value, trials.c.state).select_from(joined)
        answer = self._connection.execute(query.where(table.c.study_id == study_id, table.c.step == step))
        return [(trial_id, value, state) for trial_id, value, state in answer]

    def of_study(self, study_id: str) -> dict[str, list[Report]]:
        """Return what each trial of a study has reported, in the order of the steps."""
        table = tables.reports
        query = select(table.c.trial_id, table.c.step, table.c.value).where(table.c.study_id == study_id)
        by_trial: dict[str, list[Report]] = defaultdict(list)
        for trial_id, step, value in self._connection.execute(query.order_by(table.c.trial_id, table.c.step)):
            by_trial[trial_id].append(Report(step, value))
        return dict(by_trial)

    def part(self, study_id: str, part: Part) -> list[TrialReport]:
        """Return a part of what a study's trials have reported, in the order of steps and trials."""
        table = tables.reports
        query = select(table.c.trial_id, table.c.step, table.c.value).where(table.c.study_id == study_id)
        chosen = part_of(query, part, table.c.step, table.c.trial_id)
        return [TrialReport(*row) for row in self._connection.execute(chosen)]

    def remove(self, study_id: str) -> None:
        """Remove what the study's trials have reported."""
        self._connection.execute(delete(tables.reports).where(tables.reports.c.study_id == study_id))
