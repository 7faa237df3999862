"""A catalog's claim to the objects below a prefix: another catalog would remove those that it does not name."""

from pathlib import Path

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.lake.identity import OBJECTS
from crosswind.data.lake.identity import MARK
from crosswind.data.lake.objects.bucket import Bucket
from crosswind.data.lake.publish import hidden_name
from crosswind.data.schema.errors import ConflictError
from crosswind.data.schema.run import new_ulid

OF_OTHERS = "is CROSSWIND_LAKE that of the other servers?"


def claim(catalog: Catalog, bucket: Bucket, root: Path) -> None:
    """Check that a bucket's prefix is the catalog's lake, and mark one that nobody uses; drafts are below `root`.

    Raises: ConflictError, UnavailableError, OSError.
    """
    with catalog.write() as session:
        identity = session.lake_identity.settle(OBJECTS, new_ulid())
        is_empty = session.lake_files.is_empty()
    mark = _mark(bucket)
    if mark is None and is_empty:
        _put(bucket, root, identity)
        mark = _mark(bucket)
    if mark is None:
        raise ConflictError(f"{bucket.address} has no lake ({MARK}), but the catalog's is {identity}: {OF_OTHERS}")
    if mark != identity:
        raise ConflictError(
            f"lake {bucket.address} is another catalog's: expected a prefix that nobody uses, or lake {identity} and "
            f"not {mark!r:.40}: {OF_OTHERS}"
        )


def _mark(bucket: Bucket) -> str | None:
    content = bucket.content(MARK)
    return None if content is None else content.decode(errors="replace")


def _put(bucket: Bucket, root: Path, identity: str) -> None:
    draft = hidden_name(root, root / "set=mark" / new_ulid())
    try:
        draft.write_bytes(identity.encode())
        bucket.put(MARK, draft)
    finally:
        draft.unlink(missing_ok=True)
