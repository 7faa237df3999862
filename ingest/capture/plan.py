"""The plan of one capture: a small file that the run's wrapper writes and its ranks read."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from crosswind.data.files import published
from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.spool.plain_file import open_plain

FOLDER = "CROSSWIND_TRACES"  # names the folder of plan and traces to the ranks
FILE = "plan.json"
MAX_BYTES = 64 * 1024


@dataclass(frozen=True)
class Plan:
    """Ranks of a run that profile the steps `first` to `last`; `size_bytes` is the most that one file may hold."""

    run_id: str
    ranks: tuple[int, ...]
    first: int
    last: int
    size_bytes: int

    def write(self, folder: Path) -> None:
        """Publish it in place of the plan before. Raises: OSError."""
        with published(folder / FILE, is_durable=False) as file:
            file.write(json.dumps(asdict(self)).encode())

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Return the plan there. Raises: OSError; UnavailableError for what is no plain file; MalformedError."""
        with open_plain(folder / FILE) as file:
            content = file.read(MAX_BYTES)
        try:
            value = json.loads(content)
            ranks, run_id = value["ranks"], value["run_id"]
            numbers = [value[name] for name in ("first", "last", "size_bytes")]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise MalformedError(f"{folder / FILE}: {error}: expected a plan of a capture") from error
        if not (isinstance(run_id, str) and isinstance(ranks, list) and _are_whole([*ranks, *numbers])):
            raise MalformedError(f"{folder / FILE}: expected a plan of a capture")
        return cls(run_id, tuple(ranks), *numbers)


def _are_whole(values: list[Any]) -> bool:
    return all(type(value) is int and 0 <= value < 2**63 for value in values)


def folder_of(spool: Path, run_id: str) -> Path:
    """Return the folder of a run's plan, and of its traces until they are stored."""
    return spool / f"{run_id}.traces"
