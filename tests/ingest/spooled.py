"""Contents of a spool's sealed segments."""

from pathlib import Path

import pandas as pd

from crosswind.data.schema.steps import LOOP_SETS
from crosswind.ingest.spool.spool import RecordFrame, RowsFrame, read_frames, sealed_segments


def rows(spool: Path, name: str) -> pd.DataFrame:
    """The rows of one of the training loop's sets as the ranks recorded them, in nanoseconds."""
    [columns] = [metric_set.columns for metric_set in LOOP_SETS if metric_set.name == name]
    parts = [
        frame.columns
        for path in sealed_segments(spool)
        for frame in read_frames(path)
        if isinstance(frame, RowsFrame) and frame.metric_set.name == name
    ]
    return pd.DataFrame({column.name: [value for part in parts for value in part[column.name]] for column in columns})


def records(spool: Path, kind: str) -> list[dict[str, object]]:
    """The records of a kind, in the order in which they were written."""
    frames = [frame for path in sealed_segments(spool) for frame in read_frames(path)]
    return [dict(frame.value) for frame in frames if isinstance(frame, RecordFrame) and frame.record == kind]
