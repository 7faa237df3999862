"""The storage of a store's lake: a folder, or an object store that the catalog agrees with."""

from pathlib import Path

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.lake.storage import LocalStorage, Storage
from crosswind.data.schema.errors import ConflictError
from crosswind.data.schema.lake_address import LakeAddress

COPIES = "lake-copies"


def storage_of(home: Path, catalog: Catalog, address: LakeAddress | None) -> Storage:
    """Return the storage of the lake. Raises: ConflictError where its rows are elsewhere."""
    folder = home / "lake"
    with catalog.read() as session:
        is_local = session.lake_files.is_empty()
    if address is None:
        if not is_local:
            raise ConflictError(f"the rows of store {home} are in an object store: expected CROSSWIND_LAKE to name it")
        return LocalStorage(folder)
    if next(folder.glob("set=*/date=*/part-*.parquet"), None) is not None:
        raise ConflictError(
            f"{folder} holds rows, but CROSSWIND_LAKE is {address}: make a backup without CROSSWIND_LAKE, and restore "
            "it with CROSSWIND_LAKE to an empty CROSSWIND_HOME"
        )
    from crosswind.data.lake.objects.bucket import Bucket  # noqa: PLC0415 - a local lake needs none of it
    from crosswind.data.lake.objects.mirror import Mirror  # noqa: PLC0415

    return Mirror(home / COPIES, catalog, Bucket(address))
