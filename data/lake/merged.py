"""Files that hold the rows of several parts: the manifest first, then the file; from then on those parts count no more.

Whoever publishes one holds the lock `.landing.lock` from the look at who holds these parts already until the file is
there, so that no row ever stands in two of them.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from crosswind.data.files import sync
from crosswind.data.lake.lake import Lake, set_of
from crosswind.data.lake.locks import LANDING, alone
from crosswind.data.lake.mounts import MOUNTS, mount_of
from crosswind.data.lake.parquet import by_date, sorted_rows, write_parquet
from crosswind.data.lake.parts import Manifest, manifest_of, part_names, superseded_in
from crosswind.data.lake.publish import Staged, drop, hidden_name, land
from crosswind.data.schema.errors import ConflictError, UnavailableError

PATIENCE_SECONDS = 10.0


@dataclass(frozen=True)
class Merged:
    """A merged file and its manifest, both where no query looks."""

    path: Path
    made_of: frozenset[str]
    manifest: Staged
    file: Staged


def digest_of_columns(names: Iterable[str]) -> str:
    """Return what manifests call a set of columns."""
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]


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
    manifest = Manifest(tuple(made_of), names, len(rows), columns, _runs(rows), is_landing=is_landing)
    first, last = pc.min_max(rows["ts_ns"]).as_py().values()
    path = folder / f"part-c{first}_{last}_{manifest.digest}.parquet"
    places = manifest_of(path), path
    drafts = [hidden_name(root, place) for place in places]
    if is_landing:  # a compaction removes those of another that was killed
        drafts = [draft.with_name(f"{draft.name}.landing") for draft in drafts]
    merged = Merged(path, frozenset(made_of), (drafts[0], places[0]), (drafts[1], places[1]))
    try:
        write_parquet(rows, drafts[1], set_of(table.schema))
        drafts[0].write_text(manifest.as_text())
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


def publish_merged(root: Path, files: Sequence[Merged]) -> None:
    """Let them be found.

    Raises: ConflictError naming a part that stands in another file already; UnavailableError, OSError.
    """
    try:
        for draft in _drafts(files):
            sync(draft)  # before others have to wait
        with landing(root):
            for file in files:
                _check_not_held(file)
            for staged in ([file.manifest for file in files], [file.file for file in files]):
                for folder in land(staged):
                    sync(folder)
    finally:
        drop_merged(files)


def drop_merged(files: Iterable[Merged]) -> None:
    """Remove what was written and shall not appear."""
    drop((draft, draft) for draft in _drafts(files))


def _drafts(files: Iterable[Merged]) -> Iterator[Path]:
    for file in files:
        yield from (file.manifest[0], file.file[0])


@contextmanager
def landing(root: Path) -> Iterator[None]:
    """Within, nobody else publishes merged files of this lake. Raises: UnavailableError, OSError."""
    with alone(root / LANDING, PATIENCE_SECONDS) as is_ours:
        if not is_ours:
            raise UnavailableError(f"lake {root}: another process has held {LANDING} for {PATIENCE_SECONDS:.0f} s")
        yield


def why_unlocked(root: Path, mounts: Path = MOUNTS) -> str | None:
    """Return why locks below this folder need not hold for everybody who writes there; None where they do."""
    mount = mount_of(root, mounts)
    if mount.has_locks_of_all:
        return None
    return (
        f"{mount.kind or 'a file system that nobody names'}: expected a disk of this node, NFS with local_lock=none "
        "and without nocto, or Lustre with flock"
    )


def _check_not_held(file: Merged) -> None:
    folder = file.path.parent
    if taken := file.made_of & superseded_in(folder, {*file.made_of, *part_names(folder)}):
        raise ConflictError(f"{folder / min(taken)} was compacted by another process meanwhile")


def _runs(rows: pa.Table) -> frozenset[str] | None:
    runs = frozenset(pc.unique(rows["run_id"]).to_pylist()) if "run_id" in rows.column_names else None
    return None if runs is not None and None in runs else runs
