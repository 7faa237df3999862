"""The storage of a store's lake: a folder, or an object store that the catalog agrees with."""

from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.data.catalog.catalog import Catalog, Session
from crosswind.data.catalog.lake import identity as kinds
from crosswind.data.lake.identity import MARK, make_mark, mark_in
from crosswind.data.schema.errors import ConflictError
from crosswind.data.schema.lake_address import LakeAddress
from crosswind.data.schema.run import new_ulid

if TYPE_CHECKING:  # heavy
    from crosswind.data.lake.storage import Storage

FOLDER, COPIES = "lake", "lake-copies"
LOOK = "is its file system mounted, are CROSSWIND_HOME and CROSSWIND_LAKE those of the other servers?"


def check_place(home: Path, catalog: Catalog, address: LakeAddress | None) -> None:
    """Check that the lake is the catalog's; a lake without identity is given one. Raises: ConflictError.

    Raises: UnavailableError where the lake cannot be marked.
    """
    with catalog.read() as session:
        expected = session.lake_identity.of(kinds.FOLDER)
        has_objects = address is None and not session.lake_files.is_empty()
    if has_objects:
        raise ConflictError(f"the rows of store {home} are in an object store: expected CROSSWIND_LAKE to name it")
    if address is None:
        _check_folder(home / FOLDER, catalog, expected)
    else:
        _check_no_folder(home / FOLDER, catalog, expected, address)


def _check_folder(folder: Path, catalog: Catalog, expected: str | None) -> None:
    if expected is None:
        with catalog.write() as session:  # of several who open at once, one marks its lake
            expected = _adopted(folder, session)
    if (mark := mark_in(folder)) == expected:
        return
    is_there = f"the lake {folder} is {mark!r:.40}" if mark else f"{folder} is no lake that was stored to ({MARK})"
    raise ConflictError(
        f"{is_there}, but the catalog's rows are in lake {expected}: {LOOK} Else restore a backup to an empty "
        f"CROSSWIND_HOME; if this is the whole of that lake, write {expected} into {folder / MARK}"
    )


def _adopted(folder: Path, session: Session) -> str:
    mark = mark_in(folder)
    identity = session.lake_identity.settle(kinds.FOLDER, new := mark or new_ulid())
    if mark is None and identity == new:
        if not _has_sets(folder) and session.batches.hold_samples():
            raise ConflictError(
                f"{folder} is empty, but the catalog has noted rows: {LOOK} Else restore a backup to an empty "
                f"CROSSWIND_HOME; to go on without those rows, write {new} into {folder / MARK}"
            )
        make_mark(folder, new)
    return identity


def _has_sets(folder: Path) -> bool:
    return next(folder.glob("set=*"), None) is not None


def _check_no_folder(folder: Path, catalog: Catalog, expected: str | None, address: LakeAddress) -> None:
    if next(folder.glob("set=*/date=*/part-*.parquet"), None) is not None:
        raise ConflictError(
            f"{folder} holds rows, but CROSSWIND_LAKE is {address}: make a backup without CROSSWIND_LAKE, and "
            "restore it with CROSSWIND_LAKE to an empty CROSSWIND_HOME"
        )
    if expected is None:
        return
    if mark_in(folder) != expected:
        raise ConflictError(
            f"the catalog's rows are in lake {expected}, a folder that another server has, but CROSSWIND_LAKE is "
            f"{address}: make a backup there, and restore it with CROSSWIND_LAKE to an empty CROSSWIND_HOME"
        )
    with catalog.write() as session:
        session.lake_identity.forget(kinds.FOLDER)


def storage_of(home: Path, catalog: Catalog, address: LakeAddress | None) -> "Storage":
    """Return the storage of the lake."""
    if address is None:
        from crosswind.data.lake.storage import LocalStorage  # noqa: PLC0415 - heavy

        return LocalStorage(home / FOLDER)
    from crosswind.data.lake.objects.bucket import Bucket  # noqa: PLC0415 - a local lake needs none of it
    from crosswind.data.lake.objects.mirror import Mirror  # noqa: PLC0415

    return Mirror(home / COPIES, catalog, Bucket(address))
