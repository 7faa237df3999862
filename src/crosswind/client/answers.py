"""Answers of a server as dataclasses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from crosswind.client.decoding import decode

if TYPE_CHECKING:
    from crosswind.client.http import Server

ROWS_MAX = 500  # of one part of a list
T = TypeVar("T")


@dataclass(frozen=True)
class Answers:
    """A server that answers with these dataclasses; also raises MalformedError where something else answers."""

    server: Server

    def get(self, kind: type[T], path: str, **query: object | None) -> T:
        """Return the answer at this path; parameters that are None are left out. Raises: as `Server.get`."""
        return self._decoded(kind, self.server.get(path, query))

    def rows(self, kind: type[T], path: str, query: Mapping[str, object], limit: int | None) -> tuple[T, ...]:
        """Return the first rows of a list, None for all, part by part."""
        read: list[T] = []
        cursor: object = None
        while limit is None or len(read) < limit:
            left = ROWS_MAX if limit is None else min(ROWS_MAX, limit - len(read))
            part = self.server.get(path, {**query, "limit": left, "cursor": cursor})
            read += self._rows(kind, part)
            if (cursor := part.get("next")) is None:
                break
        return tuple(read)

    def _rows(self, kind: type[T], part: Mapping[str, Any]) -> list[T]:
        """Return the rows of a part of a list: its only field that is one."""
        lists = [value for value in part.values() if isinstance(value, list)]
        if len(lists) != 1:
            raise self.server.malformed(ValueError(f"{', '.join(part)}, expected one list"))
        return [self._decoded(kind, row) for row in lists[0]]

    def post(self, kind: type[T], path: str, body: Mapping[str, Any]) -> T:
        """Return the answer to this body. Raises: as `Server.get`."""
        return self._decoded(kind, self.server.post(path, body))

    def _decoded(self, kind: type[T], said: Mapping[str, Any]) -> T:
        try:
            return decode(kind, said)
        except ValueError as error:
            raise self.server.malformed(error) from error
