"""File descriptors that ran out: failures to open a file that do not depend on the file."""

import errno

OUT_OF_FILES = frozenset((errno.EMFILE, errno.ENFILE))
EXHAUSTED = OUT_OF_FILES | {errno.ENOMEM}


def is_exhausted(error: BaseException | None) -> bool:
    """Return whether this error, or the one that it was raised from, is such a failure."""
    cause = error if isinstance(error, OSError) or error is None else error.__cause__
    return isinstance(cause, OSError) and cause.errno in EXHAUSTED
