"""Runs of a file on their way into the catalog: the first ones in memory, the others in a temporary file."""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from typing import IO

from crosswind.data.schema.facts import Facts
from crosswind.data.schema.run import Run, RunState

IN_MEMORY = 20_000


class WaitingRuns:
    """Takes runs one by one, and gives them back in their order once all have come."""

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._in_memory = in_memory
        self._first: list[Run] = []
        self._file: IO[str] | None = None
        self._count = 0
        self.ids: set[str] = set()

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Run]:
        yield from self._first
        if self._file is not None:
            self._file.seek(0)
            yield from map(_run, self._file)

    def add(self, run: Run) -> None:
        """Take a run."""
        self._count += 1
        self.ids.add(run.run_id)
        if len(self._first) < self._in_memory:
            self._first.append(run)
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - `close` closes it
        self._file.write(json.dumps(asdict(run)) + "\n")

    def close(self) -> None:
        """Remove the temporary file."""
        if self._file is not None:
            self._file.close()


def _run(line: str) -> Run:
    row = json.loads(line)
    lists = {"nodes": tuple(row["nodes"]), "command": tuple(row["command"])}
    return Run(**{**row, **lists, "state": RunState(row["state"]), "facts": Facts(**row["facts"])})
