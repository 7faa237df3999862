"""Traces that a run captured of itself and sent with its records: their events as rows of the run, once."""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from crosswind.data.lake.lake import Lake
from crosswind.data.lake.steps_summary import time_of
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.traced import TRACED_RANK
from crosswind.data.traces.trace import RankTrace
from crosswind.ingest.capture.record import MOST_PLAIN_BYTES, CapturedTrace
from crosswind.ingest.reader.reader import Report

PLACE = "traces/{run_id}/{name}"  # of the file, below the folder of the run's own store
SAME = "select count(*) as n from traced_rank where run_id = $1 and rank = $2 and first_ns = $3 and events = $4 and "


def tables_of(lake: Lake, value: Mapping[str, Any]) -> list[pa.Table]:
    """Return the rows of a captured trace; none where somebody has stored its file by hand. Raises: MalformedError."""
    from crosswind.data.traces.rows import rows_of  # noqa: PLC0415 - heavy, and few segments have traces

    captured = CapturedTrace.of_record(value)
    place = PLACE.format(run_id=captured.run_id, name=captured.name)
    trace = replace(_read(captured), rank=captured.rank, source=place)
    started_ns, ended_ns = captured.started_ns, captured.ended_ns
    run = Run(captured.run_id, "", "", RunState.COMPLETED, started_ns=started_ns, ended_ns=ended_ns)
    if _is_stored(lake, run, trace, "source <> $5"):
        return []
    return list(rows_of(trace, run, captured.rank))


def was_captured(lake: Lake, run: Run, trace: RankTrace) -> bool:
    """Return whether a run has sent this trace of one of its ranks itself."""
    place = PLACE.format(run_id=run.run_id, name=Path(trace.source).name)
    return _is_stored(lake, run, replace(trace, source=place), "source = $5")


def _is_stored(lake: Lake, run: Run, trace: RankTrace, source: str) -> bool:
    if TRACED_RANK.name not in lake.sets() or not len(trace.events):
        return False
    parameters = [run.run_id, trace.rank or 0, int(trace.events.begin_ns[0]), len(trace.events), trace.source]
    return bool(lake.table(SAME + source, parameters, within=time_of([run]))["n"][0].as_py())


def _read(captured: CapturedTrace) -> RankTrace:
    from crosswind.ingest.readers.traces.files import with_report  # noqa: PLC0415
    from crosswind.ingest.readers.traces.kineto import KinetoReader  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / captured.name
        path.write_bytes(captured.packed())
        report = Report(captured.name, "kineto")
        [trace] = KinetoReader(MOST_PLAIN_BYTES).read(path, report)
    return with_report(trace, report)
