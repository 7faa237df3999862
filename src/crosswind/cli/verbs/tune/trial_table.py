"""Trials as people see them: with objectives as they were measured, in a table."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from crosswind.cli.text.output import table
from crosswind.data.schema.trial import Study, TrialRecord


def as_measured(study: Study, records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """Return the records with the objectives as they were measured, to be printed and for nothing else."""
    return [_as_measured(study, record) for record in records]


def _as_measured(study: Study, record: TrialRecord) -> TrialRecord:
    objective = record.trial.objective
    if objective is None:
        return record
    return replace(record, trial=replace(record.trial, objective=study.signed(objective)))


def with_unit(study: Study, objective: float) -> str:
    """Return an objective as it was measured, with the study's unit if it has one."""
    return f"{objective:.6g} {study.unit}".rstrip()


def trial_table(records: Sequence[TrialRecord]) -> str:
    """Return one line a trial; their objectives are printed as they are: see `as_measured`."""
    rows = [
        (
            record.trial_id,
            record.trial.state,
            "-" if record.trial.objective is None else f"{record.trial.objective:.6g}",
            json.dumps(record.trial.configuration),
        )
        for record in records
    ]
    return table(("trial", "state", "objective", "configuration"), rows)
