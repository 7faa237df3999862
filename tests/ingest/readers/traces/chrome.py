"""Small traces in Chrome's format."""

import json
from pathlib import Path
from typing import Any

from crosswind.data.traces.trace import RankTrace
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.traces.kineto import KinetoReader


def kernel(begin: object, duration: object, name: str = "gemm", **arguments: object) -> dict[str, Any]:
    """A kernel on stream 7, microseconds."""
    event = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": begin, "dur": duration}
    return event | {"args": {"stream": 7, "device": 0} | arguments}


def step(number: int, begin: float, duration: float) -> dict[str, Any]:
    """A marked step."""
    name = f"ProfilerStep#{number}"
    return {"ph": "X", "cat": "user_annotation", "name": name, "pid": 9, "tid": 9, "ts": begin, "dur": duration}


def document(events: list[dict[str, Any]], rank: int | None = None, world_size: int = 2, **members: object) -> str:
    """A trace's text; without a rank it states none."""
    of_rank = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": world_size}}
    return json.dumps({"schemaVersion": 1} | of_rank | members | {"traceEvents": events, "traceName": "x"})


def read_text(path: Path, text: str) -> tuple[RankTrace, Report]:
    """Write and read it."""
    path.write_text(text)
    report = Report(str(path), "kineto")
    [trace] = KinetoReader().read(path, report)
    return trace, report
