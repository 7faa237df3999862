"""Erasure of a run's rows: the parts that hold some are written again without them, under their names.

Readers that have such a part open read on in what it was; a reader that opens it later sees what is left. Compaction
waits meanwhile, or it would write rows that it had read before. Parts that other files replaced still hold theirs until
the next compaction removes them, and count no more.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crosswind.data.lake.lake import Lake, arrow_schema
from crosswind.data.lake.parquet import write_parquet
from crosswind.data.lake.parts import Span, compacted_span
from crosswind.data.lake.publish import hidden_name
from crosswind.data.lake.rollups import rollups_of
from crosswind.data.schema.errors import ConflictError, MalformedError, UnavailableError
from crosswind.data.schema.metric import MetricSet

PATIENCE_SECONDS = 10.0


def sets_of_runs(lake: Lake) -> list[str]:
    """Return the names of the sets whose rows are of runs."""
    return [name for name in lake.sets() if "run_id" in lake.columns(name)]


def erase_run(lake: Lake, run_id: str, within: Span) -> int:
    """Erase a run's rows of that time, and what was computed from them, and return how many rows there were.

    Raises: ConflictError while the lake is being compacted; MalformedError naming a damaged file; UnavailableError.
    """
    if not lake.root.is_dir():
        return 0
    try:
        with lake.storage.changing(PATIENCE_SECONDS) as is_ours:
            if not is_ours:
                raise ConflictError(f"lake {lake.root} is being compacted: try again in a moment")
            for path in rollups_of(lake, run_id):
                path.unlink(missing_ok=True)
            return sum(
                _without(lake, name, part, run_id)
                for name in sets_of_runs(lake)
                for part in lake.parts(name, within, [run_id])
            )
    except OSError as error:
        raise UnavailableError(f"lake {lake.root}: rows of run {run_id} cannot be erased: {error}") from error


def _without(lake: Lake, name: str, part: Path, run_id: str) -> int:
    """Write a part again without the run's rows, if it holds any; how many it held."""
    try:
        table = pq.ParquetFile(part).read(use_threads=False)
    except (pa.ArrowException, ValueError) as error:
        raise MalformedError(f"{part}: expected a Parquet file: {error!s:.200}") from error
    if "run_id" not in table.column_names:
        return 0
    kept = table.filter(pc.fill_null(pc.not_equal(table["run_id"], run_id), True))
    if not len(kept) and compacted_span(part.name) is None:
        lake.storage.rewrite(part, None)
    elif len(kept) < len(table):
        _replace(lake, name, part, kept)
    return len(table) - len(kept)


def _replace(lake: Lake, name: str, part: Path, rows: pa.Table) -> None:
    """Write other rows in place of a part's."""
    columns = lake.columns(name)
    of_set = MetricSet(name, "", tuple(columns[column] for column in rows.column_names))
    hidden = hidden_name(lake.root, part)
    write_parquet(rows.cast(arrow_schema(of_set)), hidden, of_set)
    lake.storage.rewrite(part, hidden)
