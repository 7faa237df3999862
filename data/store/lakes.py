"""The storage of a store's lake: a folder, or an object store that the catalog agrees with."""

from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.schema.errors import ConflictError
from crosswind.data.schema.lake_address import LakeAddress

if TYPE_CHECKING:  # heavy
    from crosswind.data.lake.storage import Storage

FOLDER, COPIES = "lake", "lake-copies"


def check_place(home: Path, catalog: Catalog, address: LakeAddress | None) -> None:
    """Check that the lake's rows are where it is said to be. Raises: ConflictError."""
    if address is None:
        with catalog.read() as session:
            if session.lake_files.is_empty():
                return
        raise ConflictError(f"the rows of store {home} are in an object store: expected CROSSWIND_LAKE to name it")
    if next((home / FOLDER).glob("set=*/date=*/part-*.parquet"), None) is not None:
        raise ConflictError(
            f"{home / FOLDER} holds rows, but CROSSWIND_LAKE is {address}: make a backup without CROSSWIND_LAKE, and "
            "restore it with CROSSWIND_LAKE to an empty CROSSWIND_HOME"
        )


def storage_of(home: Path, catalog: Catalog, address: LakeAddress | None) -> "Storage":
    """Return the storage of the lake."""
    if address is None:
        from crosswind.data.lake.storage import LocalStorage  # noqa: PLC0415 - heavy

        return LocalStorage(home / FOLDER)
    from crosswind.data.lake.objects.bucket import Bucket  # noqa: PLC0415 - a local lake needs none of it
    from crosswind.data.lake.objects.mirror import Mirror  # noqa: PLC0415

    return Mirror(home / COPIES, catalog, Bucket(address))
