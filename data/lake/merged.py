"""Files that are written to hold the rows of several parts, which count no more once they are published."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from crosswind.data.files import private
from crosswind.data.lake.job_parts import TIMED, JobPart
from crosswind.data.lake.lake import Lake, set_of
from crosswind.data.lake.parquet import by_date, sorted_rows, write_parquet
from crosswind.data.lake.parts import Manifest, digest_of_columns, manifest_of
from crosswind.data.lake.publish import hidden_name
from crosswind.data.lake.publish_merged import Merged, drop_merged


def stage_merged(
    folder: Path,
    table: pa.Table,
    made_of: Sequence[str],
    older: Iterable[frozenset[str]] = (),
    *,
    is_landing: bool = False,
) -> Merged:
    """Write a table that stands for the files `made_of` of a day's folder, and for `older` that those stood for.

    `is_landing`: these never were files. Raises: OSError; InvalidInputError for a table without a set.
    """
    rows, root = sorted_rows(table), folder.parents[1]
    names = frozenset(made_of).union(*older)
    columns = digest_of_columns(table.column_names)
    manifest = Manifest(tuple(made_of), names, len(rows), columns, _runs(rows), is_landing, _jobs(rows))
    first, last = pc.min_max(rows["ts_ns"]).as_py().values()
    path = folder / f"part-c{first}_{last}_{manifest.digest}.parquet"
    places = manifest_of(path), path
    drafts = [hidden_name(root, place) for place in places]
    if is_landing:  # a compaction removes those of another that was killed
        drafts = [draft.with_name(f"{draft.name}.landing") for draft in drafts]
    merged = Merged(path, frozenset(made_of), (drafts[0], places[0]), (drafts[1], places[1]))
    try:
        write_parquet(rows, drafts[1], set_of(table.schema))
        with open(drafts[0], "x", opener=private) as file:
            file.write(manifest.as_text())
    except BaseException:
        drop_merged([merged])
        raise
    return merged


def stage_together(lake: Lake, tables: Iterable[tuple[pa.Table, Sequence[str]]]) -> list[Merged]:
    """Write rows that came at the same time, one file for each set and day, as if their parts had been compacted.

    With each set's table come the names of the parts that its rows would have been.
    Raises: MalformedError for a set that contradicts what is stored, or of which nothing is stored; OSError.
    """
    staged: list[Merged] = []
    try:
        for table, parts in tables:
            folder = lake.defined_folder(set_of(table.schema))
            made_of = [f"part-{part}.parquet" for part in parts]
            for date, rows in by_date(table):
                staged.append(stage_merged(folder / f"date={date}", rows, made_of, is_landing=True))
    except BaseException:
        drop_merged(staged)
        raise
    return staged


def _jobs(rows: pa.Table) -> Mapping[str, Any] | None:
    types = dict(zip(rows.schema.names, rows.schema.types, strict=True))
    return JobPart.of(rows).as_json() if TIMED.items() <= types.items() else None


def _runs(rows: pa.Table) -> frozenset[str] | None:
    runs = frozenset(pc.unique(rows["run_id"]).to_pylist()) if "run_id" in rows.column_names else None
    return None if runs is not None and None in runs else runs
