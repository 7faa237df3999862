"""Reports of trials in a study's folder: lines that the holder of a lease appends to a file of its own.

`000017.0002.reports` has the reports of trial 17 by who leased it in its third turn, so a file has one writer. A line
that a killed writer left in part is not read.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.report import Report
from crosswind.models.tuner.service.folder.files import content_of, reaching
from crosswind.models.tuner.service.folder.turns import Turn

NAME = re.compile(r"(\d{6})\.(\d{4})\.reports")


@dataclass
class FolderReports:
    """The reports of one study; those of ended trials are read once."""

    path: Path
    _ended: dict[int, list[Report]] = field(default_factory=dict, init=False)

    def add(self, turn: Turn, reports: Sequence[Report]) -> None:
        """Append reports of the trial that this turn leased."""
        lines = "".join(f"{json.dumps(report.as_json())}\n" for report in reports)
        path = self.path / f"{turn.number:06d}.{turn.generation:04d}.reports"
        with reaching(path), path.open("ab") as file:
            if file.tell() and not (content_of(path) or (b"\n", 0))[0].endswith(b"\n"):
                lines = f"\n{lines}"  # ends the line of a writer that was killed
            file.write(lines.encode())
            file.flush()
            os.fsync(file.fileno())

    def of_trials(self, numbers: Sequence[int], is_ended: Callable[[int], bool]) -> dict[int, list[Report]]:
        """Return what these trials have reported, by their numbers, in the order of the steps."""
        wanted = {number for number in numbers if number not in self._ended}
        by_step: dict[int, dict[int, Report]] = {number: {} for number in wanted}
        for number, path in self._files() if wanted else ():
            if number in wanted:
                by_step[number] |= {report.step: report for report in _read(path)}
        fresh = {number: sorted(steps.values(), key=_step) for number, steps in by_step.items()}
        self._ended |= {number: reports for number, reports in fresh.items() if is_ended(number)}
        return {number: fresh[number] if number in fresh else self._ended[number] for number in numbers}

    def _files(self) -> Iterator[tuple[int, Path]]:
        with reaching(self.path):
            names = sorted(entry.name for entry in os.scandir(self.path))
        for name in names:
            if match := NAME.fullmatch(name):
                yield int(match[1]), self.path / name


def _read(path: Path) -> Iterator[Report]:
    content, _ = content_of(path) or (b"", 0)
    for line in content.splitlines():
        try:
            yield Report.from_json(json.loads(line))
        except (ValueError, KeyError, TypeError, InvalidInputError):
            continue


def _step(report: Report) -> int:
    return report.step
