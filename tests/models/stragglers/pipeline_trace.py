"""A table of a pipeline's operations, as others published one, with what meets what."""

from pathlib import Path

import pandas as pd

TRACE = Path(__file__).resolve().parents[4] / "shared/data/traces/steps/bytedance_ST.parquet"
BY_STAGE = ("params-all-gather", "grads-reduce-scatter")


def operations(path: Path) -> pd.DataFrame:
    """The columns that `replayed_slowdown` takes."""
    rows = pd.read_parquet(path)
    last = int(rows["stage"].max())
    columns = (rows["optype"], rows["stage"], rows["dp_rank"], rows["seq_id"])
    meetings = [_meeting(*row, last) for row in zip(*columns, strict=True)]
    names = {"optype": "operation", "seq_id": "number", "start_ts": "start"}
    return rows.rename(columns=names).assign(meeting=meetings)


def _meeting(kind: str, stage: int, replica: int, number: int, last: int) -> str | None:
    if kind in ("forward-send", "forward-recv"):
        return f"forward {replica} {stage + (kind == 'forward-send')} {number}"
    if kind in ("backward-send", "backward-recv"):
        return f"backward {replica} {stage - (kind == 'backward-send')} {number}"
    if kind in BY_STAGE:
        return f"{kind} {stage} {number}"
    if kind == "embedding-grads-all-reduce" and last > 0:
        return f"{kind} {replica} {number}"
    return f"{kind} {number}" if kind == "optimizer-clip-main-grad" else None
