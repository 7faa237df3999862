"""The trials of a study as a data frame."""

from collections.abc import Mapping, Sequence

import pandas as pd

from crosswind.data.schema.report import Report
from crosswind.data.schema.trial import Study, TrialRecord

FIRST = ("number", "trial_id", "state", "value")
LAST = ("run_id", "reason")


def trial_frame(study: Study, records: Sequence[TrialRecord]) -> pd.DataFrame:
    """Return one row a trial; a parameter or outcome that is called like a column of ours comes second, with `_`."""
    rows = [_row(study, number, record) for number, record in enumerate(records, 1)]
    columns = list(dict.fromkeys(name for row in rows for name in row if name not in LAST))
    frame = pd.DataFrame(rows, columns=[*(columns or FIRST), *LAST])
    return frame.astype({"value": float})  # also where no trial has one


def report_frame(study: Study, reports: Mapping[str, Sequence[Report]]) -> pd.DataFrame:
    """Return one row an intermediate value: trial, step and value."""
    sign = -1.0 if study.is_maximised else 1.0
    rows = [(trial_id, one.step, sign * one.value) for trial_id, several in reports.items() for one in several]
    return pd.DataFrame(rows, columns=["trial_id", "step", "value"])


def _row(study: Study, number: int, record: TrialRecord) -> dict[str, object]:
    trial = record.trial
    value = None if trial.objective is None else -trial.objective if study.is_maximised else trial.objective
    ours = {"number": number, "trial_id": record.trial_id, "state": str(trial.state), "value": value}
    theirs = {**record.outcomes, **trial.configuration}
    ordered = {name: theirs[name] for name in (*trial.configuration, *record.outcomes)}
    others = {(f"{name}_" if name in (*FIRST, *LAST) else name): content for name, content in ordered.items()}
    return {**ours, **others, "run_id": record.run_id, "reason": record.reason}
