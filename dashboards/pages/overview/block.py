"""A block of the Overview: a finding, its first rows, and the page with more."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote, urlencode

ROWS = 5  # of a block


class Kind(StrEnum):
    """The way in which a column's values are written."""

    TEXT = "text"
    NUMBER = "number"
    SHARE = "share"
    SECONDS = "seconds"
    TIMES = "times"  # as long
    MOMENT = "moment"  # ns UTC


@dataclass(frozen=True)
class Column:
    """The heading of a column, and how its values are written; a text in place of one says why there is none."""

    header: str
    kind: Kind = Kind.TEXT


@dataclass(frozen=True)
class Link:
    """An address below the root of the pages, and its words."""

    text: str
    address: str


@dataclass(frozen=True)
class Row:
    """The name of what the row is about, the address with more about it, empty without one, and its values."""

    name: str
    address: str
    values: tuple[str | float | None, ...]


@dataclass(frozen=True)
class Block:
    """A finding in a sentence, with rows behind it; `command` is what would fill it.

    One that `is_pending` has no rows, or part of each: the rest takes longer than a reader should wait.
    """

    name: str
    finding: str
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    more: tuple[Link, ...] = ()
    command: str = ""
    is_pending: bool = False


def address_of(path: str, words: Mapping[str, str | None]) -> str:
    """Return an address below the root with those parameters that have a value."""
    query = urlencode({name: word for name, word in words.items() if word})
    return f"{quote(path)}?{query}" if query else quote(path)
