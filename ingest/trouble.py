"""Trouble that comes again with every attempt: told when it begins and when it is over, and not in between."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from crosswind.data.errors import UnavailableError


@dataclass
class Trouble:
    """Counts the attempts that failed."""

    log: logging.Logger
    begins: str
    is_over: str  # with a place for how many attempts failed so far
    times: int = 0
    _lasts: bool = False

    @contextmanager
    def caught(self) -> Iterator[None]:
        """One attempt; that something is unavailable ends it, and is told the first time."""
        try:
            yield
        except UnavailableError as error:
            self.times += 1
            if not self._lasts:
                self.log.error("%s: %s", self.begins, error)
            self._lasts = True
        else:
            if self._lasts:
                self.log.warning(self.is_over, self.times)
            self._lasts = False
