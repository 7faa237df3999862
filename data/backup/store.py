"""Backup of a store while others write to it, its restore, and checks of a store's files."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.backup.archive import CATALOG, FOLDERS, Manifest, Writer, read_into, writing
from crosswind.data.backup.snapshot import check_snapshot, copy_rows, forget_objects, is_empty, snapshot
from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.database import open_database, sqlite_url
from crosswind.data.files import make_private, sync
from crosswind.data.lake.publish import WRITING
from crosswind.data.schema.errors import ConflictError, MalformedError, UnavailableError
from crosswind.data.schema.lake_address import LakeAddress
from crosswind.data.schema.topology import FILE as TOPOLOGY
from crosswind.data.store.lakes import COPIES
from crosswind.data.store.model_files import ModelFiles
from crosswind.data.store.store import Store

PATIENCE_SECONDS = 60.0
LAKE = "lake"
RESTORING = ".restoring"
KEPT = "fitted"  # models that are fitted again when they are missing, and may go at any time


@dataclass(frozen=True)
class Backup:
    """A backup that was made, or restored: files, their bytes, when it was made (ns UTC)."""

    path: str
    files: int
    bytes: int
    made_ns: int

    @classmethod
    def of(cls, path: Path, manifest: Manifest) -> "Backup":
        """Return that of a manifest."""
        return cls(str(path), len(manifest.entries), manifest.size, manifest.made_ns)


def back_up(store: Store, target: Path) -> None:
    """Write catalog, lake, models and topology of one instant to a file or an empty folder.

    Whatever was acknowledged before is in it. Compaction and erasure wait meanwhile, writers only for that instant.
    Raises: ConflictError while the lake is being compacted, or where something is at `target`; UnavailableError.
    """
    storage = store.lake.storage
    with storage.changing(PATIENCE_SECONDS) as is_ours:
        if not is_ours:
            raise ConflictError(f"lake {storage.root} is being compacted: try again in a moment")
        try:
            with writing(target) as writer, tempfile.TemporaryDirectory(dir=store.home, prefix=".backup-") as folder:
                _write(store, writer, Path(folder) / CATALOG)
        except OSError as error:
            raise UnavailableError(f"backup {target}: {error.strerror or error}") from error


def _write(store: Store, writer: Writer, catalog: Path) -> None:
    storage = store.lake.storage
    models = ModelFiles(store.home, store.address)
    models.bring_all(store.catalog)  # before writers wait

    def listed() -> tuple[list[str], list[str]]:
        models.bring_all(store.catalog)
        return storage.names(), list(_listed(store.home))

    of_lake, names = snapshot(store.catalog.engine, catalog, listed)
    forget_objects(catalog)
    writer.add(catalog, CATALOG)
    for name in of_lake:
        writer.add(storage.opened(name), f"{LAKE}/{name}")
    for name in names:
        writer.add(store.home / name, name)


def _listed(home: Path) -> Iterator[str]:
    """Yield the names of the files that count beside the lake, below the store's folder."""
    for folder in FOLDERS:
        if folder == LAKE:
            continue
        for place, folders, files in os.walk(home / folder):
            folders[:] = sorted(name for name in folders if name not in (WRITING, KEPT))
            below = Path(place).relative_to(home)
            yield from (str(below / name) for name in sorted(files) if not name.startswith("."))
    if (home / TOPOLOGY).is_file():
        yield TOPOLOGY


def restore(source: Path, home: Path, *, database: str | None = None, lake: LakeAddress | None = None) -> Backup:
    """Make the store of a backup again, where none is: below `home`, its catalog in `database` if that is elsewhere.

    With the address of an object store its lake is uploaded there, below a prefix that nobody uses.

    Everything is checked before anything is in its place, and the catalog comes last.
    Raises: ConflictError where a store is; MalformedError naming what is wrong in the backup; UnavailableError.
    """
    staged = home / RESTORING
    try:
        _check_free(home, staged)
        make_private(staged)
        try:
            manifest = read_into(source, staged)
            check_snapshot(staged / CATALOG)
            check_lake(staged)
            if lake is not None:
                _upload(staged, home, lake)
            _put_in_place(staged, home, database)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
        return Backup.of(source, manifest)
    except OSError as error:
        raise UnavailableError(f"restore of {source} to {home}: {error.strerror or error}") from error


def _check_free(home: Path, staged: Path) -> None:
    if staged.exists():
        raise ConflictError(f"{staged}: another restore runs, or was cut off: remove the folder then")
    if (home / CATALOG).is_file():
        engine = open_database(sqlite_url(home / CATALOG))
        try:
            if not is_empty(engine):
                raise ConflictError(f"{home / CATALOG} is not empty: restore to another folder (CROSSWIND_HOME)")
        finally:
            engine.dispose()
    for name in FOLDERS:
        if next((path for path in (home / name).rglob("*") if _counts(path)), None):
            raise ConflictError(f"{home / name} is not empty: restore to another folder (CROSSWIND_HOME)")


def _counts(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(".")


def _put_in_place(staged: Path, home: Path, database: str | None) -> None:
    if database is not None:
        _fill(staged / CATALOG, database)
        (staged / CATALOG).unlink()
    for name in (*FOLDERS, TOPOLOGY, CATALOG):
        if not (staged / name).exists():
            continue
        if (home / name).is_dir():
            shutil.rmtree(home / name)  # nothing that counts is in it
        for further in (f"{CATALOG}-wal", f"{CATALOG}-shm") if name == CATALOG else ():
            (home / further).unlink(missing_ok=True)
        (staged / name).rename(home / name)
        sync(home)


def _upload(staged: Path, home: Path, address: LakeAddress) -> None:
    """Move the files that count into an object store, and name them in the catalog."""
    from crosswind.data.lake.objects.bucket import Bucket  # noqa: PLC0415 - a local lake needs none of it
    from crosswind.data.lake.objects.mirror import Mirror  # noqa: PLC0415

    engine = open_database(sqlite_url(staged / CATALOG))
    try:
        Mirror(home / COPIES, Catalog(engine), Bucket(address)).take_over(staged / LAKE)
        ModelFiles(staged).share_all(Catalog(engine), address)
    finally:
        engine.dispose()
    with closing(sqlite3.connect(staged / CATALOG)) as catalog:
        catalog.execute("pragma journal_mode = delete")  # all in one file
    shutil.rmtree(staged / LAKE, ignore_errors=True)  # a store without rows has none


def _fill(path: Path, database: str) -> None:
    """Copy a catalog's file into a database. Raises: ConflictError where that has rows."""
    source, target = open_database(sqlite_url(path)), open_database(database)
    try:
        if not is_empty(target):
            raise ConflictError("the database is not empty: name another one (CROSSWIND_DATABASE)")
        with source.connect() as reading, target.begin() as writing_rows:
            copy_rows(reading, writing_rows)
    finally:
        source.dispose()
        target.dispose()


def check_backup(source: Path) -> Backup:
    """Check every file of a backup, and its catalog. Raises: as `restore`."""
    try:
        with tempfile.TemporaryDirectory(prefix="crosswind-") as folder:
            manifest = read_into(source, Path(folder), lambda name: name == CATALOG)
            check_snapshot(Path(folder) / CATALOG)
    except OSError as error:
        raise UnavailableError(f"backup {source}: {error.strerror or error}") from error
    return Backup.of(source, manifest)


def check_lake(home: Path) -> int:
    """Return how many files of a lake can be read, which are all. Raises: MalformedError naming one that cannot."""
    import pyarrow as pa  # noqa: PLC0415 - heavy
    import pyarrow.parquet as pq  # noqa: PLC0415

    paths = sorted((home / "lake").rglob("*.parquet"))
    for path in paths:
        try:
            pq.read_metadata(path)
        except (pa.ArrowException, OSError) as error:
            raise MalformedError(f"{path.relative_to(home)}: {error!s:.200}") from error
    return len(paths)
