"""Trouble that recurs with every attempt: reported when it begins and when it is over, not in between."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from crosswind.data.schema.errors import UnavailableError


@dataclass
class Trouble:
    """Counts the attempts that failed."""

    log: logging.Logger
    begins: str
    is_over: str  # with a place for how many attempts failed since it began
    times: int = 0  # ever
    _in_a_row: int = 0

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Make one attempt: UnavailableError ends it, and is reported the first time."""
        try:
            yield
        except UnavailableError as error:
            if not self._in_a_row:
                self.log.error("%s: %s", self.begins, error)
            self.times += 1
            self._in_a_row += 1
        else:
            if self._in_a_row:
                self.log.warning(self.is_over, self._in_a_row)
            self._in_a_row = 0
