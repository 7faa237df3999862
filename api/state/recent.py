"""Log lines since the server started, counted by where they come from."""

import logging
import time
from threading import Lock

from crosswind.data.schema.answers.status import ErrorKind

KINDS_MAX = 100
SHOWN_CHARACTERS = 300


class RecentErrors(logging.Handler):
    """Counts warnings and errors by logger and level, and keeps the last line of each."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._kinds: dict[tuple[str, str], ErrorKind] = {}
        self._turn = Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Count one record."""
        key = record.name, record.levelname.lower()
        said = record.getMessage()
        if record.exc_info and record.exc_info[0] is not None:
            said = f"{said} ({record.exc_info[0].__name__})"
        with self._turn:
            before = self._kinds.get(key)
            if before is not None or len(self._kinds) < KINDS_MAX:
                count = 1 if before is None else before.count + 1
                self._kinds[key] = ErrorKind(*key, count, time.time_ns(), said[:SHOWN_CHARACTERS])

    def kinds(self) -> tuple[ErrorKind, ...]:
        """Return what was counted, newest first."""
        with self._turn:
            return tuple(sorted(self._kinds.values(), key=lambda kind: -kind.last_ns))

    def last_of(self, logger: str) -> str | None:
        """Return the last line of a logger; None where it wrote none."""
        return next((kind.last for kind in self.kinds() if kind.source == logger), None)
