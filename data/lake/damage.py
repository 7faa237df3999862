"""Damage that is reported and passed over, so that all else goes on."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from crosswind.data.schema.errors import GoneError, InvalidInputError, MalformedError

DAMAGED = (MalformedError, InvalidInputError, GoneError, pa.ArrowException, duckdb.Error, ValueError, OSError)
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)  # which is no fault of one file


@contextmanager
def passing_over(problems: list[str], what: object) -> Iterator[None]:
    """Adds what is wrong within to the problems, and goes on. Raises: OSError where the disk takes nothing."""
    try:
        yield
    except DAMAGED as error:
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            raise
        problems.append(f"{what}: left as it is: {error!s:.300}")
