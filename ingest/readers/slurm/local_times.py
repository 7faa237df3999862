"""Local times of a whole column in Slurm's default form, YYYY-MM-DDTHH:MM:SS without a zone."""

from datetime import UTC, datetime, timedelta, tzinfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crosswind.ingest.readers.clock import EARLIEST_SECONDS, LATEST_SECONDS
from crosswind.ingest.readers.slurm.text_values import Values

LENGTH = len("2026-01-01T00:00:00")
HOUR = 3600
DAY = 24 * HOUR  # more than any zone's offset from UTC


def local_seconds(texts: pa.Array, zone: tzinfo) -> Values:
    """Return seconds since 1970 of texts that all have this LENGTH.

    Doubtful are hours in which clocks were changed and times out of range, and all if one is no such time: a `Clock`
    decides about each.
    """
    try:
        naive = pc.if_else(_have_letter(texts, 10, "T"), texts, "not a time").cast(pa.timestamp("s")).cast(pa.int64())
    except pa.ArrowInvalid:
        return Values(pa.nulls(len(texts), pa.int64()), np.ones(len(texts), np.bool_))
    hours = pc.cast(pc.floor(pc.divide(naive.cast(pa.float64()), HOUR)), pa.int64()).dictionary_encode()
    offsets = pa.array([_offset(hour * HOUR, zone) for hour in hours.dictionary.to_pylist()], pa.int64())
    seconds = pc.subtract(naive, offsets.take(hours.indices))
    return Values(seconds, np.array(seconds.is_null()))


def _have_letter(texts: pa.Array, place: int, letter: str) -> pa.Array:
    return pc.equal(pc.binary_slice(texts.cast(pa.binary()), place, place + 1), letter.encode())


def _offset(naive: int, zone: tzinfo) -> int | None:
    """Return a zone's offset from UTC in a local hour; None if it changes, or the hour is out of range."""
    if not EARLIEST_SECONDS + DAY <= naive <= LATEST_SECONDS - DAY:
        return None
    first = datetime.fromtimestamp(naive, UTC)
    moments = (first, first + timedelta(seconds=HOUR - 1))
    offsets = {moment.replace(tzinfo=zone, fold=fold).utcoffset() for moment in moments for fold in (0, 1)}
    offset = offsets.pop()
    return None if offsets or offset is None else int(offset.total_seconds())
