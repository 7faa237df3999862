"""Trials as a table for people."""

import json
from collections.abc import Sequence

from crosswind.cli.output import table
from crosswind.data.trial import TrialRecord


def trial_table(records: Sequence[TrialRecord]) -> str:
    """One line a trial."""
    rows = [
        (
            told.trial_id,
            told.trial.state,
            "-" if told.trial.objective is None else f"{told.trial.objective:.6g}",
            json.dumps(told.trial.configuration),
        )
        for told in records
    ]
    return table(("trial", "state", "objective", "configuration"), rows)
