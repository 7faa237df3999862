"""A log of one long training: an event among fifteen lines, as in published ones, beside Python's own json."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.readers.format import Format
from crosswind.ingest.readers.logs.mllog import MllogReader

BEGAN_MS = 1_760_000_000_000
OTHER = "DLL 2025-10-09 08:53:20 - Training Epoch: 0 Training Iteration: {} step_loss : 5.74  lr : 0.0002 " + "." * 60
LINES = 15  # of which the last is an event


def _event(time_ms: int, key: str, value: object, **metadata: object) -> str:
    event = {"namespace": "", "time_ms": time_ms, "event_type": "POINT_IN_TIME", "key": key, "value": value}
    return f":::MLLOG {json.dumps(event | {'metadata': metadata})}\n"


def write(path: Path, kilobytes: int) -> None:
    """A log of so many kB."""
    other = "".join(OTHER.format(number) + "\n" for number in range(LINES - 1))
    with path.open("w") as file:
        file.write(_event(BEGAN_MS, "submission_benchmark", "ssd"))
        file.write(_event(BEGAN_MS + 1, "run_start", None))
        number = 0
        while file.tell() < 1000 * kilobytes:
            number += 1
            file.write(other)
            file.write(_event(BEGAN_MS + 10 * number, "eval_accuracy", number / (number + 9), epoch_num=number))
        file.write(_event(BEGAN_MS + 10 * number + 1, "run_stop", None, status="success"))


def _json(path: Path, folder: Path) -> None:
    events = [json.loads(line[9:]) for line in path.open() if line.startswith(":::MLLOG")]
    table = pa.table({name: [str(event[name]) for event in events] for name in ("time_ms", "key", "value")})
    pq.write_table(table, folder / "events.parquet")


MLLOG = Format("mllog", "kilobytes", MllogReader(), write, 100_000, "json", _json)
