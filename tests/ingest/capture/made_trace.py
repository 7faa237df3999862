"""A small trace as torch.profiler writes it, and a file of it as a rank leaves it."""

import gzip
import json
from pathlib import Path

BEGIN_NS = 1_790_000_000_000_000_000


def packed_trace(rank: int, *, ranks: int = 2, first_step: int = 10) -> bytes:
    """Return the trace of one step: an operator within it."""
    names = (f"ProfilerStep#{first_step}", "user_annotation", 0.0), ("aten::mm", "cpu_op", 1.0 + first_step)
    events = [
        {"ph": "X", "cat": kind, "name": name, "pid": 1, "tid": 1, "ts": at[0] if at else 0.0, "dur": 50.0}
        for name, kind, *at in names
    ]
    content = {
        "schemaVersion": 1,
        "distributedInfo": {"rank": rank, "world_size": ranks},
        "traceEvents": events,
        "baseTimeNanoseconds": BEGIN_NS,
    }
    return gzip.compress(json.dumps(content).encode(), mtime=0)


def trace_file(folder: Path, rank: int, first_step: int = 10, part: str = "") -> Path:
    """Return such a file of a rank."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{part}rank{rank}.step{first_step}-{first_step}.json.gz"
    path.write_bytes(packed_trace(rank, first_step=first_step))
    return path
