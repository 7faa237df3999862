"""Receiving segments from other machines into the store, exactly once."""

import logging
import re
import time
from dataclasses import dataclass
from enum import StrEnum

from crosswind.data.files import make_private
from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import Loaded, Sent, load_segment
from crosswind.ingest.spool.quarantine import keep_within
from crosswind.ingest.spool.segment_reader import Unpacked, read_segment
from crosswind.ingest.spool.spool import ORIGIN, batch_id

log = logging.getLogger("crosswind.ingest")
NAME = re.compile(rf"[0-9]{{1,20}}-[0-9a-f]{{8}}\.{ORIGIN.pattern}\.segment")
REJECTED = "rejected"


class Fate(StrEnum):
    """The fate of a segment: `partial` is stored as far as it was understood, with a copy in quarantine."""

    STORED = "stored"
    DUPLICATE = "duplicate"
    PARTIAL = "partial"


@dataclass(frozen=True)
class Received:
    """A segment that its sender may delete."""

    batch_id: str
    fate: Fate
    rows: int
    problems: tuple[str, ...]


def check_name(name: str) -> None:
    """Check that a segment's file name is one of a spool's, so that it can become a path here.

    Raises: InvalidInputError.
    """
    if not NAME.fullmatch(name):
        raise InvalidInputError(f"segment {name!r:.200}: expected a name of the form <time>-<random>.<origin>.segment")


def receive(store: Store, segment: Unpacked, identity: str, *, rejected_bytes: int) -> Received:
    """Store a segment, which its sender calls `identity`; one stored before changes nothing.

    A segment that was not wholly understood is kept in the folder `rejected`, which holds at most `rejected_bytes`.
    Raises: InvalidInputError when it is another content, or none, or so old that it may have been stored before and
    nobody remembers; ForbiddenError when the store is for somebody who may not write all of it; UnavailableError when
    the store cannot take it.
    """
    try:
        return _receive(store, segment, identity, rejected_bytes)
    except MalformedError as error:
        raise InvalidInputError(str(error)) from error
    except (OSError, UnavailableError) as error:
        log.error("batch %s cannot be stored now: %s", identity, error)
        raise UnavailableError("the store cannot take it now") from error


def _receive(store: Store, segment: Unpacked, identity: str, rejected_bytes: int) -> Received:
    actual = batch_id(segment)
    if actual != identity:
        raise InvalidInputError(f"batch {identity}: {segment.name} with this content is {actual}")
    reader, loaded = read_segment(segment), Loaded()
    is_readable = next(reader, None) is not None
    reader.close()
    if not is_readable:
        raise InvalidInputError(reader.report.reason or f"{segment.name}: expected frames")
    rejected = store.home / REJECTED
    make_private(rejected)
    quarantine = rejected / f"{identity[:32]}-{segment.name}"
    sent = Sent(identity, time.time_ns())
    is_understood = load_segment(store, segment, loaded, quarantine=quarantine, sent=sent)
    if not is_understood:
        keep_within(rejected.iterdir(), rejected_bytes)
    fate = Fate.DUPLICATE if loaded.duplicates else Fate.STORED if is_understood else Fate.PARTIAL
    return Received(identity, fate, loaded.rows, tuple(loaded.problems))
