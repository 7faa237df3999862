"""Bytes a value of what the agent of this machine writes, once a second: as it is shipped, and in the lake."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq

from crosswind.data.lake.compaction import compact
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import load_spool
from crosswind.ingest.ship.pack import pack, packings
from crosswind.ingest.spool.spool import RowsFrame, read_segment, sealed_segments

SECONDS = int(os.environ.get("CROSSWIND_BENCH_SECONDS", "300"))
AGENT = (sys.executable, "-m", "crosswind.cli.main", "agent")
KEYS = {"ts_ns", "mono_ns", "node", "device", "boot_id"}
LATER_NS = 400 * 86_400 * 10**9


def figures(folder: Path) -> dict[str, object]:
    """Return values a sweep and bytes a value. Files' footers, which a day has once for all nodes, are not counted."""
    spool = folder / "spool"
    _sample(folder, spool)
    segments = sealed_segments(spool)
    values, sweeps = _values(segments)
    sent = sum(len(pack(path.read_bytes(), packings()[0])) for path in segments)
    with Store.open(folder / "store") as store:
        load_spool(store, spool)
        compact(store.lake, settle_seconds=-1, now_ns=time.time_ns() + LATER_NS)
        stored = _bytes_of_columns(store)
    return {
        "node_values_a_sweep": round(values / sweeps),
        "node_sent_bytes_a_value": round(sent / values, 3),
        "node_bytes_a_value": round(stored / values, 3),
    }


def _sample(folder: Path, spool: Path) -> None:
    environment = {**os.environ, "CROSSWIND_HOME": str(folder / "home"), "CROSSWIND_SPOOL": str(spool)}
    with subprocess.Popen(AGENT, env=environment, stdout=subprocess.DEVNULL) as agent:
        time.sleep(SECONDS)
        agent.terminate()


def _values(segments: list[Path]) -> tuple[int, int]:
    """Return how many values the segments hold, without keys, and of how many sweeps."""
    values, times = 0, set()
    for path in segments:
        for frame in read_segment(path):
            if isinstance(frame, RowsFrame):
                own = [column for name, column in frame.columns.items() if name not in KEYS]
                values += sum(value is not None for column in own for value in column)
                times |= set(frame.columns["ts_ns"]) if frame.metric_set.name == "agent" else set()
    return values, len(times)


def _bytes_of_columns(store: Store) -> int:
    """Return the bytes of all columns, packed as they are; keys among them."""
    return sum(_bytes(path) for name in store.lake.sets() for path in store.lake.parts(name))


def _bytes(path: Path) -> int:
    footer = pq.read_metadata(path)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return sum(group.column(number).total_compressed_size for group in groups for number in range(footer.num_columns))
