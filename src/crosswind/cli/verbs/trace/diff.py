"""`crosswind trace diff A B`: by what the steps of one run differ from those of another."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from crosswind.cli.progress import Progress
from crosswind.cli.text.output import printable, say, say_answer
from crosswind.cli.text.trace_difference import PARTS, difference_text
from crosswind.cli.verbs.trace.reading import traces_of
from crosswind.client.connection import connect
from crosswind.client.run_names import run_named
from crosswind.data.schema.answers.trace_difference import RunsDifference
from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.settings import Settings


def execute(files: Sequence[Path], arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the difference. Raises: ProjectError."""
    if len(files) != 2 or arguments.run:
        raise InvalidInputError(f"trace diff: {len(files)} of A and B are given; expected two files, folders or runs")
    answer = _difference(files[0], files[1], arguments, settings)
    say_answer(answer, lambda one: difference_text(one, arguments.top or PARTS), as_json=arguments.json)
    if arguments.html:
        _write(answer, arguments.html)
        if not arguments.json:
            say(printable(f"\nreport: {arguments.html}"))
    return 0


def _difference(first: Path, second: Path, arguments: argparse.Namespace, settings: Settings) -> RunsDifference:
    """Return the difference of two traces where both are files or folders, else of two runs."""
    missing = [path for path in (first, second) if not path.exists()]
    if missing == [first, second] and not any(path.suffix or len(path.parts) > 1 for path in missing):
        return _of_runs(str(first), str(second), arguments, settings)
    if missing:
        raise UnavailableError(f"{missing[0]}: no such file or folder; expected two of them, or two runs")
    from crosswind.models.traces.difference.difference import difference  # noqa: PLC0415 - heavy

    return difference(*(traces_of([path], arguments, settings) for path in (first, second)))


def _of_runs(first: str, second: str, arguments: argparse.Namespace, settings: Settings) -> RunsDifference:
    if arguments.last_step:
        raise InvalidInputError("--last-step: is of traces in files; expected none of it with stored runs")
    with connect(arguments.server, settings=settings) as client, Progress("comparing"):
        return client.trace_diff(*(run_named(client, name).run_id for name in (first, second)))


def _write(answer: RunsDifference, path: Path) -> None:
    from crosswind.dashboards.trace_difference import difference_page  # noqa: PLC0415 - heavy

    try:
        path.write_text(difference_page(answer), encoding="utf-8")
    except OSError as error:
        raise UnavailableError(f"{path}: cannot be written: {error.strerror}") from error
