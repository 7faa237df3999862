"""Files next to a Paraver trace: labels of events (.pcf) and names of nodes (.row)."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.reader.lines import whole_text
from crosswind.ingest.reader.reader import Report

LABELS_LIMIT = 1 << 26  # bytes
TYPE = re.compile(r"\d+\s+(\d{1,18})\s+(.+)")
VALUE = re.compile(r"(\d{1,18})\s+(.+)")


@dataclass
class Labels:
    """Names of types of events, and of their values."""

    types: dict[int, str] = field(default_factory=dict)
    values: dict[tuple[int, int], str] = field(default_factory=dict)

    def of(self, kind: int, value: int) -> str:
        """Return the label of a value, or one made of the numbers."""
        return self.values.get((kind, value)) or f"{self.types.get(kind, f'event {kind}')} {value}"


def labels_of(path: Path, report: Report) -> Labels:
    """Return the labels in a .pcf; none, with a note, where it is not there or no text."""
    labels = Labels()
    of_types: list[int] = []
    section = ""
    for line in map(str.strip, _lines(path, report)):
        if line in ("EVENT_TYPE", "VALUES"):
            section = line
            of_types = [] if line == "EVENT_TYPE" else of_types
        elif not line:
            section = section if section == "EVENT_TYPE" else ""
        elif section == "EVENT_TYPE" and (match := TYPE.fullmatch(line)):
            of_types.append(int(match.group(1)))
            labels.types[of_types[-1]] = match.group(2)[:200]
        elif section == "VALUES" and (match := VALUE.fullmatch(line)):
            labels.values |= {(kind, int(match.group(1))): match.group(2)[:200] for kind in of_types}
    return labels


def nodes_of(path: Path, report: Report) -> list[str]:
    """Return the names of nodes in a .row, in their order; none where it is not there."""
    lines = [line.strip() for line in _lines(path, report)]
    place = next((number for number, line in enumerate(lines) if line.startswith("LEVEL NODE SIZE")), None)
    size = lines[place].rpartition(" ")[2] if place is not None else "0"
    return lines[place + 1 : place + 1 + int(size)] if place is not None and size.isdecimal() else []


def _lines(path: Path, report: Report) -> list[str]:
    try:
        return whole_text(path, Report(str(path), report.format), limit=LABELS_LIMIT).splitlines()
    except (UnavailableError, MalformedError) as error:
        report.notes.append(f"names are missing: {error}")
        return []
