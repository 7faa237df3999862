"""The system description in a tree of MLPerf results."""

import itertools
import json
from collections.abc import Mapping
from pathlib import Path

from crosswind.data.schema.errors import MalformedError

LIMIT = 1 << 20  # bytes; real ones have some 2000


def description_file(log: Path) -> Path | None:
    """Return `systems/NAME.json` of a log in `results/NAME/BENCHMARK/`; None outside such a tree.

    Source: github.com/mlcommons/policies, submission_rules.adoc, "Submission package".
    """
    for system, above in itertools.pairwise(log.absolute().parents):
        if above.name == "results":
            file = above.parent / "systems" / f"{system.name}.json"
            return file if file.is_file() else None
    return None


def description(file: Path) -> Mapping[str, object]:
    """Return the description in the file. Raises: MalformedError when it cannot be read, or is no JSON object."""
    try:
        with file.open("rb") as stream:
            document = json.loads(stream.read(LIMIT + 1))
    except (OSError, ValueError, RecursionError) as error:
        raise MalformedError(f"{file}: {error!s:.200}") from error
    if not isinstance(document, dict):
        raise MalformedError(f"{file}: expected a JSON object")
    return document
