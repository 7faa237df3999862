"""Kernel Tuner's cache files: JSON documents, possibly not closed because the run was interrupted."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.reader.reader import Report

BEGINNING = re.compile(r'^\s*"cache": \{\s*$', re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """One configuration's record; `line` is 0 if the file was read as one document."""

    key: str
    values: Mapping[str, object]
    line: int = 0

    @property
    def measured_ns(self) -> int:
        """Return the time of measurement in ns, to whole seconds; 0 without a zone."""
        try:
            moment = datetime.fromisoformat(str(self.values.get("timestamp")))
            return int(moment.timestamp()) * 1_000_000_000 if moment.tzinfo else 0
        except (ValueError, OverflowError):
            return 0


def cache_of(text: str, path: Path, report: Report) -> tuple[Mapping[str, object], list[Entry]]:
    """Return the fields before the entries, and the entries in their order.

    Kernel Tuner appends a line for each configuration, and closes the document when it has finished: an open or a
    damaged one is read line by line. Raises: MalformedError.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return _lines(text, path, report)
    cache = document.get("cache") if isinstance(document, dict) else None
    if not isinstance(cache, dict):
        raise MalformedError(f"{path}: cache is {type(cache).__name__}; expected an object")
    wrong = [key for key, values in cache.items() if not isinstance(values, dict)]
    for key in wrong:
        report.skip(0, key, "is no record of a configuration")
    return document, [Entry(key, values) for key, values in cache.items() if key not in set(wrong)]


def _lines(text: str, path: Path, report: Report) -> tuple[Mapping[str, object], list[Entry]]:
    begin = BEGINNING.search(text)
    header = _object(text[: begin.end()] + "}}") if begin else None
    if begin is None or header is None:
        raise MalformedError(f'{path}: no JSON, and no lines after a line "cache": {{ either')
    first = text[: begin.end()].count("\n") + 2
    entries: dict[str, Entry] = {}
    for number, line in enumerate(text[begin.end() + 1 :].split("\n"), first):
        if line.strip(" \r}"):
            plain = line.rstrip().removesuffix(",")
            members = _object("{" + plain + "}") or _object("{" + plain) or {}  # the last line of all closes the cache
            ((key, values),) = members.items() if len(members) == 1 else ((line, None),)
            if isinstance(values, dict):
                entries[key] = Entry(key, values, number)
            else:
                report.skip(number, line, "no record of a configuration: the line is damaged or cut short")
    if text.rstrip().endswith(","):
        report.notes.append("the cache is open: its run was interrupted or still goes on")
    return header, list(entries.values())


def _object(text: str) -> dict[str, object] | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
