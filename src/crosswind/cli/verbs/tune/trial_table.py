"""Trials as a table for people."""

import json
from collections.abc import Sequence

from crosswind.cli.text.output import table
from crosswind.data.schema.trial import TrialRecord


def trial_table(records: Sequence[TrialRecord]) -> str:
    """One line a trial."""
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
