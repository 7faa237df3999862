"""Removal of objects that nobody can need: what was replaced an hour ago, and what killed writers left a day ago."""

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.lake.identity import MARK
from crosswind.data.lake.objects.bucket import Bucket

GRACE_NS = 3_600_000_000_000  # for readers who learned of it before it was replaced
ORPHAN_NS = 24 * GRACE_NS
DAY_SECONDS = 86_400.0
MODELS = "models/"  # objects that the registry of models names
AT_ONCE = 500
REPLACED_SECONDS = 60.0  # of removing what was replaced: a store may be slower at that than rows come to be compacted


def sweep(catalog: Catalog, bucket: Bucket, *, lists_all: Callable[[float], bool], now_ns: int | None = None) -> None:
    """Remove them. `lists_all` returns whether it is time to look through the whole bucket, once in so many seconds.

    What was replaced is removed for a minute at most, the rest next time. A store that lists late what was written
    only delays removal. Raises: UnavailableError.
    """
    now, until = catalog.clock() if now_ns is None else now_ns, time.monotonic() + REPLACED_SECONDS
    while time.monotonic() < until and (keys := _retired(catalog, now - GRACE_NS)):
        bucket.remove(keys)
        with catalog.write() as session:
            session.lake_files.forget(keys)
    if lists_all(DAY_SECONDS):
        old = (one.key for one in bucket.listing() if one.written_ns < now - ORPHAN_NS and _is_ours(one.key))
        for keys in _chunks(old):
            with catalog.read() as session:
                named = session.lake_files.named_among(keys)
            bucket.remove(key for key in keys if key not in named)


def _is_ours(key: str) -> bool:
    return key != MARK and not key.startswith(MODELS)


def _retired(catalog: Catalog, moment_ns: int) -> list[str]:
    with catalog.read() as session:
        return session.lake_files.retired_before(moment_ns, AT_ONCE)


def _chunks(keys: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(keys)
    while chunk := list(islice(remaining, AT_ONCE)):
        yield chunk
