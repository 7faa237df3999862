"""An inventory of a bucket: what it lists, held against what the catalog names; no object is read."""

from collections.abc import Iterator

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.lake.identity import MARK
from crosswind.data.lake.objects.bounded import at_once
from crosswind.data.lake.objects.bucket import Bucket
from crosswind.data.lake.storage import Inventory


def take_inventory(catalog: Catalog, bucket: Bucket) -> Inventory:
    """Return it. An object that is not listed is looked at, as a store may list late. Raises: UnavailableError."""
    done = Inventory()
    with catalog.read() as session:
        named = session.lake_files.sizes()
    for one in bucket.listing():
        if one.key == MARK:
            continue
        size, counts = named.pop(one.key, (None, False))
        if size is None:
            done.unnamed, done.unnamed_bytes = done.unnamed + 1, done.unnamed_bytes + one.bytes
        elif not counts:
            done.replaced, done.replaced_bytes = done.replaced + 1, done.replaced_bytes + one.bytes
        elif one.bytes != size:
            done.problems.append(f"object {one.key} has {one.bytes} bytes, expected {size}")
    missing = _missing(catalog, bucket, sorted(key for key, (_, counts) in named.items() if counts))
    done.problems += [f"object {key} is not there" for key in missing]
    return done


def _missing(catalog: Catalog, bucket: Bucket, unlisted: list[str]) -> Iterator[str]:
    is_there: dict[str, bool] = {}
    at_once(lambda key=key: is_there.update({key: bucket.has(key)}) for key in unlisted)  # type: ignore[misc]
    with catalog.read() as session:
        live = session.lake_files.live_among(unlisted)
    yield from (key for key in unlisted if key in live and not is_there[key])
