"""The part of a list that is wanted: so many rows in one order, behind a place."""

from dataclasses import dataclass

Key = int | float | str | None


@dataclass(frozen=True)
class Part:
    """At most `limit` rows in the order of column `by` and then of the list's key, nulls last.

    `after` holds those values of the last row seen; None begins with the first row.
    """

    limit: int
    by: str = ""
    descending: bool = False
    after: tuple[Key, ...] | None = None
