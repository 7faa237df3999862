"""Filters by time of lists of runs and jobs."""

import re
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from crosswind.api.wire import INT64
from crosswind.data.schema.errors import InvalidInputError

FORM = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII)
NANOSECONDS = re.compile(r"\d{1,19}", re.ASCII)
EXAMPLE = "2026-01-02T03:04:05.000000006Z"
Moment = Annotated[str | None, Field(max_length=40, description=f"as {EXAMPLE}, or nanoseconds since 1970")]


class TimeQuery(BaseModel):
    """The time in which rows began: at `since` or later, and before `until`."""

    since: Moment = None
    until: Moment = None

    @property
    def since_ns(self) -> int | None:
        """The beginning in ns UTC; None where it is open. Raises: InvalidInputError."""
        return moment_ns("since", self.since)

    @property
    def until_ns(self) -> int | None:
        """The end in ns UTC; None where it is open. Raises: InvalidInputError."""
        return moment_ns("until", self.until)


def moment_ns(name: str, text: str | None) -> int | None:
    """Return a moment in ns UTC; `name` is its parameter. Raises: InvalidInputError."""
    if text is None:
        return None
    if NANOSECONDS.fullmatch(text) and int(text) < INT64:
        return int(text)
    try:
        whole, fraction, zone = FORM.fullmatch(text).groups()  # type: ignore[union-attr]
        seconds = datetime.fromisoformat(whole + zone.replace("Z", "+00:00")).timestamp()
    except (AttributeError, ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"{name}: {text!r:.60} is no moment: expected RFC 3339 with a zone, as {EXAMPLE}, or nanoseconds since 1970"
        ) from error
    return int(seconds) * 1_000_000_000 + int((fraction or "").ljust(9, "0"))
