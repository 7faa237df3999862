"""Traces of a run's ranks: one recorded trace with other ranks and times, or generated ones of the same shape."""

import gzip
import re
from pathlib import Path

from benchmarks.traces.generated import write_rank

SHARED = Path(__file__).parents[3] / "shared/data/traces"
RECORDED = SHARED / "kineto/v100_rank1of2.json.gz"
MEGABYTES = 42  # of a generated rank
INFO = re.compile(rb'("rank": )\d+(, "world_size": )\d+')
TIME = re.compile(rb'("ts": )(\d+)')
SHIFT_US = 137  # between the clocks of consecutive ranks


def write_ranks(folder: Path, count: int, *, megabytes: float = MEGABYTES, recorded: Path = RECORDED) -> str:
    """Write so many ranks' traces into a folder; return "recorded" or "generated"."""
    folder.mkdir()
    text = gzip.decompress(recorded.read_bytes()) if recorded.exists() else None
    for rank in range(count):
        path = folder / f"rank{rank}.json"
        if text is None:
            write_rank(path, rank, count, megabytes=megabytes)
        else:
            path.write_bytes(as_rank(text, rank, count))
    return "generated" if text is None else "recorded"


def as_rank(text: bytes, rank: int, count: int) -> bytes:
    """Return a trace as another rank of a run of so many, on a clock of its own."""
    text = INFO.sub(rb"\g<1>%d\g<2>%d" % (rank, count), text, count=1)
    return TIME.sub(lambda match: match[1] + b"%d" % (int(match[2]) + rank * SHIFT_US), text)
