"""Acts of people on their own runs: sharing, taking along, erasing; each is kept in the audit trail."""

import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import asdict
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from crosswind.data.lake.erasure import erase_run, sets_of_runs
from crosswind.data.lake.steps_summary import time_of
from crosswind.data.schema.run import Run
from crosswind.data.store.store import Store


def share_run(store: Store, run_id: str, *, shared: bool, who: str) -> Run:
    """Let everybody see a run, or no longer. Raises: NotFoundError; ForbiddenError for another's that is shared."""
    with store.catalog.write() as session:
        session.audit.add(who, "share run" if shared else "unshare run", run_id)
        return session.runs.share(run_id, shared=shared)


def erase(store: Store, run_id: str, *, who: str) -> int:
    """Erase a run: its rows in the lake, then its facts; return how many rows there were.

    Trials that it measured keep their objective, and models that were fitted with it stay as they are. Killed half way,
    it is there with fewer rows, and can be erased again.
    Raises: NotFoundError; ForbiddenError for another's that is shared; ConflictError while the lake is being compacted;
    MalformedError, UnavailableError.
    """
    with store.catalog.read() as session:
        run = session.runs.own(run_id)
    rows = erase_run(store.whole.lake, run_id, time_of([run]))
    with store.catalog.write() as session:
        session.audit.add(who, "erase run", run_id, workload=run.workload, user=run.user, rows=rows)
        session.runs.remove(run_id)
    return rows


def export(store: Store, run_id: str, into: IO[bytes], *, who: str) -> None:
    """Write a ZIP file of everything that is stored of a run: `run.json`, and its rows of each set as Parquet.

    Raises: NotFoundError, MalformedError.
    """
    with store.catalog.write() as session:
        run = session.runs.get(run_id)
        facts = {
            "run": {**asdict(run), "facts": run.facts.given},
            "ranks": [asdict(rank) for rank in session.ranks.of(run_id)],
            "placements": [asdict(place) for place in session.places.placements_of_run(run_id)],
        }
        session.audit.add(who, "export run", run_id)
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("run.json", json.dumps(facts, indent=1, default=str))
        for name, table in _rows(store, run):
            rows = io.BytesIO()
            pq.write_table(table, rows, compression="zstd")
            packed.writestr(f"{name}.parquet", rows.getbuffer(), zipfile.ZIP_STORED)


def _rows(store: Store, run: Run) -> Iterator[tuple[str, pa.Table]]:
    lake = store.lake
    for name in sets_of_runs(lake):
        columns = list(lake.columns(name))
        table = lake.counters(name, columns, where="run_id = ?", parameters=[run.run_id], within=time_of([run]))
        if len(table):
            yield name, table
